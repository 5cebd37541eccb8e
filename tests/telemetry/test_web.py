"""The page, over real HTTP."""

import json
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest

from agent.telemetry import metric_families, metric_updates
from agent.telemetry.health import Health
from agent.web.request_checks.refusal_log import Refusals
from agent.web.web_server import ListenError, Server


class Seconds:
    """A monotonic clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def health(seconds: Seconds) -> Health:
    return Health(seconds)


@pytest.fixture
async def page(health: Health, seconds: Seconds) -> AsyncIterator[str]:
    registry = metric_families.registry()
    metric_updates.Metrics(registry, ["vast"], ["train"])
    server = Server("127.0.0.1", 0, registry, health, refusals=Refusals(seconds))
    host, port = await server.start()
    yield f"http://{host}:{port}"
    await server.close()


async def get(url: str, **headers: str) -> tuple[int, Mapping[str, str], str]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as reply:
        return reply.status, reply.headers, await reply.text()


async def test_prometheus_reads_the_metrics(page: str) -> None:
    status, headers, text = await get(f"{page}/metrics")
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    assert 'gpubid_market_available{market="vast"} 0.0' in text
    assert "process_resident_memory_bytes" in text
    _, headers, text = await get(f"{page}/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert "openmetrics" in headers["Content-Type"]
    assert text.endswith("# EOF\n")


async def test_ready_after_start_and_alive_while_it_makes_progress(page: str, health: Health, seconds: Seconds) -> None:
    health.expect("cycle", within=60)
    assert (await get(f"{page}/readyz"))[0] == 503
    assert (await get(f"{page}/healthz"))[0] == 200
    health.started()
    assert (await get(f"{page}/readyz"))[0] == 200
    seconds.now += 61
    status, _, text = await get(f"{page}/healthz")
    assert status == 503
    assert json.loads(text) == {"ok": False, "late": ["cycle made no progress for 61 s, 60 s are allowed"]}
    assert (await get(f"{page}/readyz"))[0] == 503


async def test_it_only_reads(page: str) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{page}/metrics") as reply:
        assert reply.status == 405
    assert (await get(f"{page}/"))[0] == 404


async def test_a_taken_port_is_told_with_its_mend(page: str, health: Health, seconds: Seconds) -> None:
    server = Server(
        "127.0.0.1", int(page.rsplit(":", 1)[1]), metric_families.registry(), health, refusals=Refusals(seconds)
    )
    with pytest.raises(ListenError, match=r"change listen in \[web\]"):
        await server.start()
