"""The bench before the simulated dstack server: the cards' words, which are Vast's, are put into the server's here.

A rent is on demand, since nothing is bid for there. `EXEMPT` has the cards from which dstack is exempt, and why.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec

from agent.clock import SteppedClock
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets.dstack import market as dstack
from agent.markets.dstack import names, orders
from agent.markets.port import Terms
from agent.simulator.climate import Climate
from agent.simulator.dstack import world as server
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World
from tests.markets.bench import DISK_GB, Bench
from tests.markets.scene import LABEL, OFFER
from tests.support import market as support
from tests.support.steered import Simulator

OF_PROJECT = "/api/project/main"
ROUTES = {
    "PUT /asks": f"POST {OF_PROJECT}/runs/apply",
    "DELETE /instances": f"POST {OF_PROJECT}/runs/stop",
    "GET /users": "POST /api/projects/main/get",
    "GET": "POST /api/runs/list",
}
CALLS = {
    ("PUT", "/asks/"): ("POST", f"{OF_PROJECT}/runs/apply"),
    ("GET", "/users/current"): ("POST", "/api/projects/main/get"),
}
BOUNDS = orders.Bounds(("aws", "lambda", "cloudrift", "vultr"))

_OWN = "shown in tests/markets/test_dstack_endings.py: "
_NO_BIDS = "nothing is bid for there"
EXEMPT = {
    "MC-04": _OWN + "a stop is not yet the end of a machine",
    "MC-07": "it is the operator's own server and publishes no thresholds; its lanes are assumed",
    "MC-08": "clouds are paid in arrears: there is no credit that could be empty",
    "MC-10": _NO_BIDS,
    "MC-11": _NO_BIDS,
    "MC-12": _NO_BIDS + "; tests/markets/test_dstack_orders.py has the refusal of a bid",
    "MC-13": _NO_BIDS,
    "MC-14": "a machine's price has its disk in it",
    "MC-15": _NO_BIDS,
    "MC-16": _NO_BIDS,
    "MC-17": "it names no machine before a rent: a pool takes many leases",
    "MC-18": "its plans are whole, no samples",
    "MC-19": "it rents out no disks",
    "MC-20": _NO_BIDS,
    "MC-22": "it has no search grammar; a query is for Vast.ai alone",
    "MC-23": "its rows are not rationed",
    "MC-24": "its rows are not rationed",
    "MC-25": "its rows are not rationed",
    "MC-26": "shown in tests/markets/test_dstack_orders.py: a run without capacity fails after the order",
    "MC-27": "shown in tests/markets/test_dstack_reads.py: its pages are of a hundred runs",
    "MC-30": _OWN + "a run that was released is listed until its machine is gone",
    "MC-31": "it cannot pause",
    "MC-32": _NO_BIDS,
    "MC-33": _NO_BIDS,
    "MC-34": "a silent machine shows only by its silence; tests/markets/test_dstack_reads.py has unknown words",
    "MC-35": "shown in tests/markets/test_dstack_reads.py: its release is no end yet",
    "MC-36": "its machines have no end date",
    "MC-37": "its account has no credit; tests/markets/test_dstack_reads.py has the project",
    "MC-38": "the server knows no bill: each cloud sends its own",
    "MC-39": "it does not show traffic",
}
"""Cards that cannot hold of dstack, each with the reason."""


class ServerMarket(support.Market):
    """The control API, asked about dstack."""

    async def weather(self, fault: str, **fields: Any) -> int:
        route = ROUTES.get(fields.get("route", ""))
        return await super().weather(fault, **fields | {"market": "dstack"} | ({"route": route} if route else {}))

    async def truth(self) -> dict[str, Any]:
        return dict((await super().truth())["dstack"])


class ServerBench(Bench):
    """A bench whose instances are runs."""

    penalty = 15.0
    rents = 0

    @property
    def world(self) -> server.World:
        world = self.simulated.simulator.sides["dstack"].world  # type: ignore[attr-defined]
        assert isinstance(world, server.World)
        return world

    async def offers(self, **changes: Any) -> list[Offer]:
        """Return what is sold on demand, unless the question names tenures."""
        return await super().offers(**{"tenures": frozenset({Tenure.ON_DEMAND})} | changes)

    async def offer(self, **changes: Any) -> Offer:
        return (await self.offers(**changes))[0]

    async def rent(self, offer: Offer, bid: UsdPerHour | None = None, label: str = LABEL) -> str:
        """Rent on demand; the server takes no name of an active run twice."""
        assert bid is None
        self.rents += 1
        own = label if self.rents == 1 else f"{label[:-4]}{self.rents:04x}"
        terms = Terms(Tenure.ON_DEMAND, None, DISK_GB, "ubuntu:22.04", command="sleep infinity")
        return await self.market.rent(offer, terms, own)

    async def running(self, instance_id: str) -> Instance:
        return await self.until(instance_id, InstanceState.RUNNING)

    async def calls(self, method: str, part: str) -> int:
        method, path = CALLS.get((method, part), (method, part))
        calls = (await self.simulated.truth())["calls"]
        return sum(call["method"] == method and call["path"].endswith(path) for call in calls)

    def orders(self, instance_id: str) -> dict[tuple[str, str], Callable[[], Awaitable[Any]]]:
        """Return a rent of the pool: a release asks for the run's name before it sends anything."""
        del instance_id
        where = names.pool_of("aws", "us-east-1", "l4-1x")
        assert where is not None
        offer = msgspec.structs.replace(OFFER, market="dstack", host_id=where.host_id, vram_mb=20_000)
        return {("POST", f"{OF_PROJECT}/runs/apply"): lambda: self.rent(offer)}


@contextlib.asynccontextmanager
async def dstack_bench(
    *,
    doors: Callable[[], call_gate.Gate] = call_gate.Gate,
    key: str = call_gate.DEFAULT_KEY,
    credit: float | None = None,
    daily_rows: int = 0,
    climate: Climate = support.STILL,
) -> AsyncIterator[ServerBench]:
    """Set up a bench; rows are not rationed here, `doors` are Vast's, and there is no credit."""
    del daily_rows, credit
    clock = SteppedClock(datetime.fromtimestamp(support.START, UTC))
    world = World(climate, seed=11, start=support.START, hosts=1)
    async with (
        Simulator(world, clock, seed=11, gate=doors()) as simulator,
        aiohttp.ClientSession() as session,
    ):
        terrain = dstack.Terrain("main", server.FLEET, BOUNDS)
        ours = dstack.connect(simulator.url("dstack"), lambda: key, clock, lambda: 0.5, terrain=terrain)
        try:
            yield ServerBench(market=ours, simulated=ServerMarket(simulator, session), clock=clock)
        finally:
            await ours.close()
