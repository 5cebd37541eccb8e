"""A cross-validation on a Dask cluster prints the bytes of one process.

Scheduler and workers are Dask's own commands in processes on loopback.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from tests.lab.test_cross_validate import COMMAND, POOLS, SHORT, records
from tests.support import dask_boxes
from tests.support.dask_boxes import Boxes

__all__ = ["records"]

AVAILABILITY = ["--problem", "availability", *SHORT]


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boxes]:
    folder = tmp_path_factory.mktemp("boxes")
    with dask_boxes.forking() as forker, dask_boxes.boxes(forker, folder, "left", "right") as found:
        yield found


def timeless(value: Any) -> Any:
    """Return a document without the seconds that it took."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key not in ("seconds", "wall_seconds")}
    return [timeless(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "problem",
    [
        pytest.param([], id="deadline"),
        pytest.param(POOLS, id="pools", marks=pytest.mark.nightly),
        pytest.param(AVAILABILITY, id="slots", marks=pytest.mark.nightly),
    ],
)
def test_the_same_bytes_and_who_computed_what(boxes: Boxes, records: Path, problem: list[str]) -> None:
    command = [*COMMAND, *problem, "--traces", str(records), "--judge", "two", "--json"]
    here, there = (CliRunner().invoke(app, [*command, *on]) for on in ([], ["--on", boxes.address]))
    assert (here.exit_code, there.exit_code) == (0, 0), there.output
    assert json.dumps(timeless(json.loads(here.stdout))) == json.dumps(timeless(json.loads(there.stdout)))
    assert any(f"{name} (tcp://127.0.0.1:" in there.stderr for name in ("left", "right"))
    assert "parts in" in there.stderr


def test_a_mistake_in_the_records_is_said_as_without_a_cluster(boxes: Boxes, records: Path) -> None:
    command = [*COMMAND, "--traces", str(records), "--judge", "four", "--on", boxes.address]
    refused = CliRunner().invoke(app, command)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "no record four; there is one, three, two" in " ".join(refused.stderr.split())


def test_an_address_without_tls_is_refused(records: Path) -> None:
    refused = CliRunner().invoke(app, [*COMMAND, "--traces", str(records), "--on", "tcp://10.0.0.5:8786"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "tls://HOST:8786" in refused.stderr
