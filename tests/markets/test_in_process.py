"""The seam without sockets, held to real HTTP: the same world and the same calls give the same answers."""

import itertools
import random
import tempfile
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.app import App
from agent.clock import SteppedClock
from agent.config.settings import Config, Listen, MarketSettings
from agent.domain.work.workload import WorkloadKind
from agent.markets.http_exchange import Exchange, HttpExchange, Lost, Request
from agent.outside import Outside
from agent.simulator import faults
from agent.simulator.climate_files import named
from agent.simulator.vast.world import World
from tests.support.both import LIMITS
from tests.support.in_process import InProcess
from tests.support.scene import FLEET, KEY, START, STILL, strategies, work
from tests.support.steered import Simulator

BEARER = {"Authorization": f"Bearer {KEY}"}
CALLS = (
    ("vast", Request("GET", "/api/v1/instances/?limit=25&select_filters=%7B%7D", BEARER)),
    ("vast", Request("POST", "/api/v0/bundles/", BEARER, b'{"type":"bid","limit":5}')),
    ("vast", Request("GET", "/api/v0/users/current?api_key=a&api_key=b", {})),
    ("vast", Request("PUT", "/api/v0/asks/1/", BEARER, b'{"price": 0.2', is_write=True)),
    ("vast", Request("DELETE", "/api/v0/instances/5/", {}, b"{}", is_write=True)),
    ("vast", Request("GET", "/api/v0/no/such%20route/", BEARER)),
    ("runpod", Request("GET", "/v2/pods", BEARER)),
    ("runpod", Request("GET", "/v2/catalog/gpus?include=AVAILABILITY&product=POD&count=1&cloud=SECURE", BEARER)),
    ("runpod", Request("POST", "/v2/pods", BEARER, b'{"name": "x"}', is_write=True)),
    ("runpod", Request("POST", "/graphql", BEARER, b'{"query": "{ myself { id } }"}')),
)
FAULTS: tuple[Mapping[str, Any], ...] = (
    {},
    {"fault": "throttle_text"},
    {"fault": "throttle_json", "retry_after": 7},
    {"fault": "throttle_retry_after", "retry_after": 31_536_000},
    {"fault": "html_403"},
    {"fault": "server_error_before", "status": 502},
    {"fault": "server_error_after"},
    {"fault": "slow", "delay": 12},
    {"fault": "truncated"},
    {"fault": "malformed"},
    {"fault": "reset", "when": "before"},
    {"fault": "reset", "when": "after"},
    {"fault": "empty_list"},
    {"fault": "wrong_account"},
    {"fault": "revoked_key"},
    {"fault": "clock_skew", "skew": 300},
)
OF_THE_SERVER = {"content-length", "server", "connection", "transfer-encoding"}


async def answers(exchanges: Mapping[str, Exchange], simulator: Simulator, fault: Mapping[str, Any]) -> list[Any]:
    """Ask everything under one fault; return what came back."""
    if fault:
        for weather in (simulator.weather, simulator.runpod.weather):
            weather.add(faults.parse({**fault, "market": "*"}))
    told: list[Any] = []
    for market, call in CALLS:
        asked = Request(call.method, simulator.url(market) + call.url, call.headers, call.body, call.is_write)
        try:
            reply = await exchanges[market].send(asked, 10_000_000)
        except Lost:
            told.append("lost")
            continue
        headers = {name.lower(): text for name, text in reply.headers.items()}
        told.append((reply.status, reply.body, {k: v for k, v in headers.items() if k not in OF_THE_SERVER}))
    return [*told, simulator.clock.time(), seen(simulator.api.calls), seen(simulator.runpod_api.calls)]


def seen(calls: Iterable[tuple[float, str, str, int]]) -> list[Any]:
    """Return the calls, one of each run of dropped reads: aiohttp asks anew where a kept connection was dropped."""
    runs = ((call, len(list(again))) for call, again in itertools.groupby(calls))
    return [call for call, times in runs for _ in range(times if call[3] else 1)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: "-".join(map(str, fault.values())) or "none")
async def test_every_fault_looks_the_same_from_hand_to_hand_as_over_tcp(fault: Mapping[str, Any]) -> None:
    told = []
    for is_real in (True, False):
        clock = SteppedClock(START)
        async with Simulator(World(STILL, seed=5, start=clock.time(), hosts=30), clock, seed=5) as simulator:
            exchanges = over(simulator, is_real=is_real)
            told.append(await answers(exchanges, simulator, fault))
            for each in exchanges.values():
                await each.close()
    assert told[0] == told[1]


def over(simulator: Simulator, *, is_real: bool) -> dict[str, Exchange]:
    """Return what carries requests to the two markets."""
    if is_real:
        return {"vast": HttpExchange(30.0), "runpod": HttpExchange(30.0)}
    return {"vast": InProcess(simulator.api.answer), "runpod": InProcess(simulator.runpod_api.answer)}


@pytest.mark.parametrize("climate", [pytest.param("bidding_war", marks=pytest.mark.nightly), "lying_list"])
async def test_the_program_lives_the_same_hours_either_way(climate: str) -> None:
    """Every call of the market and every row of the ledger, two workloads on two markets."""
    assert await lived(climate, is_real=True) == await lived(climate, is_real=False)


async def lived(climate: str, *, is_real: bool) -> Any:
    clock, ids = SteppedClock(START), random.Random(climate)
    simulator = Simulator(World(named(climate), seed=3, start=clock.time(), hosts=60), clock, seed=3)
    with tempfile.TemporaryDirectory() as directory:
        ledger = Path(directory) / "ledger.sqlite"
        config = Config(
            file=Path(directory) / "agent.toml",
            digest="",
            markets=tuple(MarketSettings(name, "", "still", "", None, spend=False) for name in ("vast", "runpod")),
            limits=LIMITS,
            workloads=(work(), work("serve", kind=WorkloadKind.SERVICE, markets=("runpod",))),
            poll=timedelta(seconds=20),
            ledger=ledger,
            listen=Listen("127.0.0.1", 0),
            strategies=None,
        )
        async with simulator:
            urls = {"vast": simulator.vast_url, "runpod": simulator.runpod_url}
            outside = Outside(
                clock,
                lambda _: KEY,
                urls,
                new_id=lambda: f"{ids.getrandbits(64):016x}",
                jitter=lambda: 0.5,
                fleet_id=FLEET,
                exchanges={} if is_real else over(simulator, is_real=False),
            )
            app = await App.open(config, strategies(), outside)
            try:
                for _ in range(100):
                    await app.cycle()
                    clock.advance(20)
                reader = await app.ledger.reader()
                rows = (await reader.leases(), await reader.intents(), await reader.events(limit=1000))
            finally:
                await app.close()
            return clock.time(), seen(simulator.api.calls), seen(simulator.runpod_api.calls), rows
