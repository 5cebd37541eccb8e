"""A simulated market behind real HTTP for tests: a quiet world, a clock that only tests move, and a plain client."""

import contextlib
import dataclasses
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from agent.simulator.climate import Climate, Demand
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World
from tests.support.steered import Simulator

START = 1_793_836_800.0  # 2026-11-05T00:00:00Z
# Nothing happens in it by itself: no rivals come, no prices walk, no host fails, every pull succeeds.
STILL = Climate(
    name="still",
    demand=Demand(arrivals=0.0, taken=0.3, fight_back=0.0),
    price_walks_per_day=0.0,
    failures=0.0,
    pull_failure_probability=0.0,
)


@dataclasses.dataclass(slots=True)
class Answer:
    """An answer of the market."""

    status: int
    headers: Any
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    @property
    def content_type(self) -> str:
        return str(self.headers["Content-Type"])


@dataclasses.dataclass(slots=True)
class Market:
    """A running simulator, and a session that talks to it over TCP."""

    simulator: Simulator
    session: aiohttp.ClientSession

    @property
    def world(self) -> World:
        return self.simulator.world

    async def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = call_gate.DEFAULT_KEY, **query: Any
    ) -> Answer:
        """Send one request. `path` is without /api/v0 unless it begins with /api."""
        url = self.simulator.vast_url + (path if path.startswith(("/api/", "/s3/", "/static/")) else f"/api/v0{path}")
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        params = {name: value if isinstance(value, str) else json.dumps(value) for name, value in query.items()}
        if isinstance(body, bytes):
            sent: dict[str, Any] = {"data": body}
        else:
            sent = {} if body is None else {"json": body}
        async with self.session.request(method, url, headers=headers, params=params, **sent) as response:
            return Answer(response.status, response.headers, await response.read())

    async def control(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request to the control API."""
        sent: dict[str, Any] = {"data": body} if isinstance(body, bytes) else {"json": body}
        url = self.simulator.control_url + path
        async with self.session.request(method, url, **(sent if body is not None else {})) as response:
            return Answer(response.status, response.headers, await response.read())

    async def advance(self, seconds: float) -> None:
        answer = await self.control("POST", "/advance", {"seconds": seconds})
        assert answer.status == 200, answer.raw

    async def weather(self, fault: str, **fields: Any) -> int:
        answer = await self.control("POST", "/weather", {"fault": fault, **fields})
        assert answer.status == 200, answer.raw
        return int(answer.body["id"])

    async def truth(self) -> dict[str, Any]:
        return dict((await self.control("GET", "/truth")).body)

    async def offers(self, kind: str = "bid", **filters: Any) -> list[dict[str, Any]]:
        """Search rentable offers of GPUs."""
        question = {"rentable": {"eq": True}, "num_gpus": {"gte": 1}, "type": kind, "limit": 512, **filters}
        return list((await self.call("POST", "/bundles/", question)).body["offers"])

    async def cheapest(self, kind: str = "bid", **filters: Any) -> dict[str, Any]:
        """Search the cheapest, by the offer's own price."""
        rows = [row for row in await self.offers(kind, **filters) if row["min_bid"] is not None]
        return min(rows, key=lambda row: (row["dph_base"], row["id"]))

    async def rent(self, offer_id: int, price: float | None, **fields: Any) -> Answer:
        """Rent an offer with a body like that of the vendor's program."""
        terms = {"client_id": "me", "image": "ubuntu:22.04", "disk": 16.0, "price": price, "label": None, **fields}
        return await self.call("PUT", f"/asks/{offer_id}/", terms)

    async def rented(self, offer_id: int, price: float | None, **fields: Any) -> int:
        """Rent an offer, which must succeed. Return the contract's id."""
        answer = await self.rent(offer_id, price, **fields)
        assert answer.status == 200, answer.raw
        assert answer.body["success"] is True, answer.raw
        return int(answer.body["new_contract"])

    async def instance(self, instance_id: int) -> dict[str, Any]:
        """Return one record."""
        return dict((await self.call("GET", f"/instances/{instance_id}/", owner="me")).body["instances"])

    async def instances(self, **query: Any) -> list[dict[str, Any]]:
        """Return the first page of records."""
        return list((await self.call("GET", "/api/v1/instances/", **query)).body["instances"])

    async def running(self, instance_id: int, within: float = 86_400.0) -> dict[str, Any]:
        """Wait until an instance runs. Return its record."""
        waited = 0.0
        while (record := await self.instance(instance_id))["actual_status"] != "running":
            assert waited < within, record
            await self.advance(60.0)
            waited += 60.0
        return record


@contextlib.asynccontextmanager
async def running_market(
    climate: Climate = STILL,
    *,
    seed: int = 7,
    hosts: int = 50,
    credit: float | None = None,
    doors: call_gate.Gate | None = None,
    registry: Callable[[ScaledClock], ProcessRegistry] | None = None,
) -> AsyncIterator[Market]:
    """Serve a market while the block runs."""
    clock = ScaledClock(START, speed=0.0)
    world = World(climate, seed=seed, start=START, hosts=hosts, credit=credit)
    made = Simulator(world, clock, seed=seed, gate=doors, processes=registry(clock) if registry else None)
    async with made as simulator, aiohttp.ClientSession() as session:
        yield Market(simulator, session)


def states(record: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Return the four fields that describe an instance's state."""
    return record["actual_status"], record["cur_state"], record["next_state"], record["intended_status"]
