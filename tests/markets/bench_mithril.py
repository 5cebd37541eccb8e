"""The bench before the simulated Mithril: the cards' words, which are Vast's, are put into Mithril's here.

`EXEMPT` has the cards from which Mithril is exempt, and why. Its own stories are in
tests/markets/test_mithril_auctions.py.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets.mithril import market as mithril
from agent.markets.port import Terms
from agent.simulator.climate import Climate
from agent.simulator.mithril import world as auctions
from agent.simulator.mithril.pool_auction import Bidder
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World
from tests.markets.bench import DISK_GB, Bench
from tests.markets.scene import LABEL
from tests.support import market as support
from tests.support.steered import Simulator

ROUTES = {
    "PUT /asks": "POST /v2/spot/bids",
    "DELETE /instances": "DELETE /v2/spot/bids",
    "GET /users": "GET /v2/me",
    "GET": "GET",
}
CALLS = {("PUT", "/asks/"): ("POST", "/v2/spot/bids"), ("GET", "/users/current"): ("GET", "/v2/me")}
SHORT = "gpubid-0123456789ab-0-0123456789abcdef"

_OWN = "shown in tests/markets/test_mithril_auctions.py: "
EXEMPT = {
    "MC-07": "it publishes no thresholds; its lanes are assumed",
    "MC-08": "it pays in arrears: there is no credit that could be empty",
    "MC-11": "a refused bid leaves nothing behind",
    "MC-12": "it sells nothing on demand",
    "MC-13": "it has no asks",
    "MC-14": _OWN + "only a bid that lost its machine pays for a disk, at the operator's figure",
    "MC-15": _OWN + "the price paid is not the bid",
    "MC-16": "it echoes no bid: the price to win is the pool's",
    "MC-17": "it names no host, neither before nor after a rent",
    "MC-18": "its list of pools is whole, no sample",
    "MC-19": "it rents out no disks",
    "MC-22": "it has no search grammar; a query is for Vast.ai alone",
    "MC-23": "its rows are not rationed",
    "MC-24": "its rows are not rationed",
    "MC-25": "its rows are not rationed",
    "MC-26": "it sells nothing on demand; a bid on a full pool waits",
    "MC-27": _OWN + "its pages are of a hundred bids, more than its quota of machines",
    "MC-31": _OWN + "every start waits for an auction",
    "MC-32": _OWN + "a loss has a notice, and no price in its event",
    "MC-33": _OWN + "rivals are of a pool, not of a machine",
    "MC-34": "it does not show whether a machine answers; tests/markets/test_mithril_reads.py has unknown words",
    "MC-35": "it does not show what runs on a machine",
    "MC-36": "its bids have no end date",
    "MC-37": _OWN + "its account has no credit",
    "MC-39": "its traffic is free",
}
"""Cards that cannot hold of Mithril, each with the reason."""


class AuctionMarket(support.Market):
    """The control API, asked about Mithril."""

    async def weather(self, fault: str, **fields: Any) -> int:
        route = ROUTES.get(fields.get("route", ""))
        return await super().weather(fault, **fields | {"market": "mithril"} | ({"route": route} if route else {}))

    async def truth(self) -> dict[str, Any]:
        return dict((await super().truth())["mithril"])


class AuctionBench(Bench):
    """A bench whose instances are spot bids."""

    penalty = 15.0
    rents = 0
    label = SHORT

    @property
    def world(self) -> auctions.World:
        return self.simulated.simulator.mithril.world

    async def offers(self, **changes: Any) -> list[Offer]:
        """Return the pools with a known price to win."""
        return [one for one in await super().offers(**changes) if one.floor is not None]

    async def offer(self, **changes: Any) -> Offer:
        """Return a pool with machines free."""
        return (await self.offers(**changes))[0]

    async def rent(self, offer: Offer, bid: UsdPerHour | None = None, label: str = LABEL) -> str:
        """Rent at the floor's double, or at the bid; the market takes no name twice."""
        self.rents += 1
        own = label if self.rents == 1 else f"{label[:-4]}{self.rents:04x}"
        limit = bid or (offer.floor or money.FREE).scaled(2.0)
        return await self.market.rent(offer, Terms(Tenure.INTERRUPTIBLE, limit, DISK_GB, "ubuntu:22.04"), own)

    async def running(self, instance_id: str) -> Instance:
        return await self.until(instance_id, InstanceState.RUNNING)

    async def rival(self, offer: Offer | Instance, bid: float) -> int:
        """Let another renter bid for all machines of a pool together."""
        kind, _, region = str(getattr(offer, "offer_id", "")).partition("@")
        if not region:
            _, region, kind = offer.host_id.split("/")
        pool = self.world.pools[kind, region]
        number = 1_000_000 + len(pool.bidders())
        pool.add(Bidder(number, round(bid * 100), pool.capacity, self.world.now))
        return number

    async def calls(self, method: str, part: str) -> int:
        method, path = CALLS.get((method, part), (method, part))
        calls = (await self.simulated.truth())["calls"]
        return sum(call["method"] == method and call["path"].endswith(path) for call in calls)

    def orders(self, instance_id: str) -> dict[tuple[str, str], Callable[[], Awaitable[Any]]]:
        path = f"/v2/spot/bids/{instance_id}"
        return {("PATCH", path): lambda: self.market.rebid(instance_id, money.per_hour(1))}


@contextlib.asynccontextmanager
async def mithril_bench(
    *,
    doors: Callable[[], call_gate.Gate] = call_gate.Gate,
    key: str = call_gate.DEFAULT_KEY,
    credit: float | None = None,
    daily_rows: int = 0,
    climate: Climate = support.STILL,
) -> AsyncIterator[AuctionBench]:
    """Set up a bench; rows are not rationed here, `doors` are Vast's, and there is no credit."""
    del daily_rows, credit
    clock = SteppedClock(datetime.fromtimestamp(support.START, UTC))
    world = World(climate, seed=11, start=support.START, hosts=1)
    pools = auctions.World(climate, seed=11, start=support.START)
    async with (
        Simulator(world, clock, seed=11, gate=doors(), auctions=pools) as simulator,
        aiohttp.ClientSession() as session,
    ):
        terrain = mithril.Terrain(pools.project, 100_000)
        ours = mithril.connect(simulator.mithril_url, lambda: key, clock, lambda: 0.5, terrain=terrain)
        try:
            yield AuctionBench(market=ours, simulated=AuctionMarket(simulator, session), clock=clock)
        finally:
            await ours.close()
