"""Answers of pages, programs and Prometheus: bounded, and unknown where they are no number."""

import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from agent.domain.slot_demand import Demand, DemandFrom
from agent.observe.demand import demand_sources
from agent.observe.demand.demand_sources import DemandUnknownError
from tests.support.programs import until

SAMPLE = '{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"18"]}]}}'
SCALAR = '{"status":"success","data":{"resultType":"scalar","result":[1,"7.2"]}}'
NO_SAMPLE = '{"status":"success","data":{"resultType":"vector","result":[]}}'


@contextlib.asynccontextmanager
async def page(body: str, status: int = 200, **headers: str) -> AsyncIterator[str]:
    """Serve one body at every path."""

    async def answered(_: web.Request) -> web.Response:
        return web.Response(text=body, status=status, headers=headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", answered)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("source", "body", "tasks"),
    [
        (DemandFrom.HTTP, "18\n", 18),
        (DemandFrom.HTTP, "2.5", 3),
        (DemandFrom.HTTP, '{"tasks": 18, "more": []}', 18),
        (DemandFrom.HTTP, "1e9", 10**9),
        (DemandFrom.PROMETHEUS, SAMPLE, 18),
        (DemandFrom.PROMETHEUS, SCALAR, 8),
    ],
)
async def test_a_number_is_read(source: DemandFrom, body: str, tasks: int) -> None:
    async with page(body) as url:
        assert await demand_sources.tasks(Demand(0, source, url, "up")) == tasks


@pytest.mark.parametrize(
    ("source", "body", "status", "told"),
    [
        (DemandFrom.HTTP, "NaN", 200, "no number of tasks"),
        (DemandFrom.HTTP, "inf", 200, "no number of tasks"),
        (DemandFrom.HTTP, "-1", 200, "no number of tasks"),
        (DemandFrom.HTTP, "true", 200, "no number of tasks"),
        (DemandFrom.HTTP, '{"task": 3}', 200, "no number of tasks"),
        (DemandFrom.HTTP, "", 200, "no number of tasks"),
        (DemandFrom.HTTP, "[" * 5000, 200, "no number of tasks"),
        (DemandFrom.PROMETHEUS, "[" * 5000, 200, "none of Prometheus's"),
        (DemandFrom.HTTP, "9" * 10_000_000, 200, "it answers more than 64 kB"),
        (DemandFrom.HTTP, "18", 503, "it answers 503"),
        (DemandFrom.HTTP, "18", 302, "it answers 302"),
        (DemandFrom.PROMETHEUS, NO_SAMPLE, 200, "the query gives 0 samples, and must give one"),
        (DemandFrom.PROMETHEUS, "18", 200, "none of Prometheus's"),
    ],
)
async def test_what_is_no_number_is_unknown(source: DemandFrom, body: str, status: int, told: str) -> None:
    async with page(body, status, **({"Location": "/elsewhere"} if status == 302 else {})) as url:
        with pytest.raises(DemandUnknownError, match=told):
            await demand_sources.tasks(Demand(0, source, url, "up"))


def asked(*command: str) -> Demand:
    return Demand(0, DemandFrom.COMMAND, command=command)


async def test_a_program_prints_it_without_our_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAST_API_KEY", "secret")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials")
    names = "import os; print(len([name for name in os.environ if 'KEY' in name or 'CRED' in name]))"
    assert await demand_sources.tasks(asked(sys.executable, "-c", names)) == 0


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("false",), "it ended with 1"),
        (("/nowhere/at/all",), "it cannot be asked"),
        (("echo", "$(id -u)"), "no number of tasks"),
        (("yes",), "it answers more than 64 kB"),
    ],
)
async def test_a_program_that_fails_is_unknown(command: tuple[str, ...], told: str) -> None:
    with pytest.raises(DemandUnknownError, match=told):
        await demand_sources.tasks(asked(*command))


async def test_a_program_that_left_its_group_holds_up_nothing() -> None:
    """It keeps the pipe open; the answer is that there is none in time."""
    with pytest.raises(DemandUnknownError):
        await demand_sources.tasks(asked("sh", "-c", "setsid sleep 3 & yes"))


async def test_a_program_that_hangs_is_ended_with_all_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand_sources, "DEADLINE_SECONDS", 1.0)
    file = tmp_path / "child"
    with pytest.raises(DemandUnknownError, match="no answer within"):
        await demand_sources.tasks(asked("sh", "-c", f"sleep 600 & echo $! > {file}; wait"))
    program = int(file.read_text())
    # A killed program ends when it next gets a processor; nobody may have read its end yet.
    await until(lambda: state_of(program) in {"", "Z"}, "its end")


def state_of(program: int) -> str:
    """Return the kernel's letter for the state of a process; empty for one that is gone."""
    try:
        return Path(f"/proc/{program}/stat").read_text().split()[2]
    except FileNotFoundError:
        return ""
