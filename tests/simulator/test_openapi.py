"""The surface under questions made from the vendor's published OpenAPI file; GPUBID_OPENAPI names a copy of it.

Nothing may break the simulator, and an answer has the shape that the file gives it, but for the departures named here.
test_protocol*.py tests the meaning of the answers item by item.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from agent.simulator.vast.http import call_gate

SPECIFICATION = os.environ.get("GPUBID_OPENAPI", "")
EXAMPLES = 40
SERVED = (
    "POST /api/v0/bundles",
    "PUT /api/v0/asks/{id}",
    "GET /api/v0/instances/{id}",
    "PUT /api/v0/instances/{id}",
    "DELETE /api/v0/instances/{id}",
    "PUT /api/v0/instances/bid_price/{id}",
    "PUT /api/v0/instances/reboot/{id}",
    "PUT /api/v0/instances/recycle/{id}",
    "PUT /api/v0/instances/request_logs/{id}",
    "GET /api/v0/instances/{id}/ssh",
    "POST /api/v0/instances/{id}/ssh",
    "DELETE /api/v0/instances/{id}/ssh/{ssh_key_id}",
    "GET /api/v1/instances",
    "GET /api/v0/charges",
    "GET /api/v1/invoices",
    "GET /api/v0/users/current",
    "GET /api/v0/notification-types",
    "GET /api/v0/webhooks",
    "POST /api/v0/webhooks",
)
DEPARTURES = {
    "GET /api/v0/instances/{id}": "the answer for a gone instance is null, as on the real market; the file has none",
    "DELETE /api/v0/instances/{id}/ssh/{ssh_key_id}": "as for bid_price: the file knows no code for such an id",
    "PUT /api/v0/instances/bid_price/{id}": "an unroutable id is answered with not_found; the file knows one code",
}

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        not SPECIFICATION, reason="GPUBID_OPENAPI does not name the vendor's OpenAPI file: the surface was not fuzzed"
    ),
    pytest.mark.filterwarnings("default"),
]


@functools.cache
def operations() -> dict[str, Any]:
    import schemathesis
    from schemathesis.core.result import Ok

    found = schemathesis.openapi.from_path(SPECIFICATION).get_all_operations()
    return {one.ok().label: one.ok() for one in found if isinstance(one, Ok)}


@pytest.fixture(scope="module")
def vast_url() -> Iterator[str]:
    command = [sys.executable, "-m", "agent", "simulate", "--speed", "0", "--hosts", "50"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        yield json.loads(program.stdout.readline())["vast_url"]
        program.terminate()


@pytest.mark.parametrize("label", SERVED)
def test_no_question_breaks_the_surface(label: str, vast_url: str) -> None:
    from schemathesis.specs.openapi import checks

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operations()[label].as_strategy())
    def play(case: Any) -> None:
        answer = case.call(base_url=vast_url, headers={"Authorization": f"Bearer {call_gate.DEFAULT_KEY}"})
        assert answer.status_code < 500, f"{case.as_curl_command()}\n{answer.text[:300]}"
        if label not in DEPARTURES:
            case.validate_response(answer, checks=[checks.response_schema_conformance])

    play()
