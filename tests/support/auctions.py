"""The simulated Mithril behind real HTTP for tests: a quiet world, a clock that only tests move, and a plain client."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from agent.simulator.climate import Climate
from agent.simulator.mithril.world import World
from agent.simulator.processes.process_registry import ProcessRegistry
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.world import World as VastWorld
from tests.support import mithril_schema
from tests.support.market import START, STILL, Answer
from tests.support.steered import Simulator

A100 = "it_RrgkIZz6c9BZu5gi", "us-central3-a"
"""A recorded pool: 3 of 26 instances are free, at $1.00."""
H100 = "it_XqgKWbhZ5gznAYsG", "us-central2-a"
"""A recorded pool: none of 9 instances is free, at $8.00."""
B200 = "it_HiqFjGT37y3fREPT", "us-central5-a"
"""A recorded pool: none of 32 instances is free, at $0.03."""


@dataclasses.dataclass(slots=True)
class Auctions:
    """A running simulator, and a session that talks to its Mithril over TCP."""

    simulator: Simulator
    session: aiohttp.ClientSession
    is_honest: bool = True

    @property
    def world(self) -> World:
        return self.simulator.mithril.world

    async def call(self, method: str, path: str, body: Any = None, *, key: str | None = "", **query: Any) -> Answer:
        """Send one request, with the account's key unless another one or None is given.

        Before any weather the answer must conform to the vendor's document, where that is at hand.
        """
        shown = self.simulator.mithril.key if key == "" else key
        headers = {} if shown is None else {"Authorization": f"Bearer {shown}"}
        sent: dict[str, Any] = {"data": body} if isinstance(body, bytes) else {} if body is None else {"json": body}
        url = self.simulator.mithril_url + path
        async with self.session.request(method, url, headers=headers, params=query, **sent) as response:
            answer = Answer(response.status, response.headers, await response.read())
        if self.is_honest:
            assert mithril_schema.faults(method, path, answer.status, answer.raw) == [], answer.raw
        return answer

    async def get(self, path: str, **query: Any) -> Any:
        """Send a GET, which must succeed. Return the document."""
        answer = await self.call("GET", path, **query)
        assert answer.status == 200, answer.raw
        return answer.body

    async def place(self, limit: str = "$2.00", pool: tuple[str, str] = A100, **fields: Any) -> Answer:
        """Place a bid."""
        body = {
            "project": self.world.project,
            "instance_type": pool[0],
            "region": pool[1],
            "limit_price": limit,
            "instance_quantity": 1,
            "name": "fleet-slot-1",
            "launch_specification": {"volumes": [], "ssh_keys": []},
            **fields,
        }
        return await self.call("POST", "/v2/spot/bids", body)

    async def placed(self, limit: str = "$2.00", pool: tuple[str, str] = A100, **fields: Any) -> str:
        """Place a bid, which must succeed. Return its id."""
        answer = await self.place(limit, pool, **fields)
        assert answer.status == 201, answer.raw
        return str(answer.body["fid"])

    async def show(self, fid: str) -> dict[str, Any]:
        return dict(await self.get(f"/v2/spot/bids/{fid}"))

    async def change(self, fid: str, **fields: Any) -> Answer:
        return await self.call("PATCH", f"/v2/spot/bids/{fid}", fields)

    async def instances(self, **query: Any) -> list[dict[str, Any]]:
        return list((await self.get("/v2/instances", project=self.world.project, **query))["data"])

    async def prices(self, pool: tuple[str, str] = A100, **query: Any) -> dict[str, Any]:
        return dict(await self.get("/v2/pricing/current", instance_type=pool[0], region=pool[1], **query))

    async def control(self, method: str, path: str, body: Any = None) -> Answer:
        """Send one request to the control API."""
        url = self.simulator.control_url + path
        async with self.session.request(method, url, **({"json": body} if body is not None else {})) as response:
            return Answer(response.status, response.headers, await response.read())

    async def advance(self, seconds: float) -> None:
        answer = await self.control("POST", "/advance", {"seconds": seconds})
        assert answer.status == 200, answer.raw

    async def weather(self, fault: str, **fields: Any) -> int:
        self.is_honest = False
        answer = await self.control("POST", "/weather", {"fault": fault, "market": "mithril", **fields})
        assert answer.status == 200, answer.raw
        return int(answer.body["id"])

    async def truth(self) -> dict[str, Any]:
        return dict((await self.control("GET", "/truth")).body["mithril"])


@contextlib.asynccontextmanager
async def running_auctions(
    climate: Climate = STILL, *, seed: int = 7, registry: Callable[[ScaledClock], ProcessRegistry] | None = None
) -> AsyncIterator[Auctions]:
    """Serve the markets while the block runs."""
    clock = ScaledClock(START, speed=0.0)
    world = World(climate, seed=seed, start=START)
    vast = VastWorld(climate, seed=seed, start=START, hosts=5)
    async with (
        Simulator(vast, clock, seed=seed, auctions=world, processes=registry(clock) if registry else None) as simulator,
        aiohttp.ClientSession() as session,
    ):
        yield Auctions(simulator, session)
