"""The bench before the simulated RunPod: the cards' words, which are Vast's, are put into RunPod's here.

A rent without a bid is on demand, since bids end. `EXEMPT` has the cards from which RunPod is exempt, and why.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp

from agent.clock import SteppedClock
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets.port import Terms
from agent.markets.runpod import market as runpod
from agent.markets.runpod import names
from agent.simulator.runpod import world as pods
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World
from tests.markets.bench import DISK_GB, Bench
from tests.markets.scene import LABEL
from tests.support import market as support
from tests.support.both import OF_THE_PAST
from tests.support.steered import Simulator

ROUTES = {"PUT /asks": "POST /v2/pods", "DELETE /instances": "POST /v2/pods", "GET": "GET"}
CALLS = {("PUT", "/asks/"): ("POST", "/v2/pods")}

EXEMPT = {
    "MC-07": "its published limits are an example; its lanes are tested in tests/markets/test_runpod_orders.py",
    "MC-11": "a refused bid leaves nothing behind",
    "MC-12": "shown in tests/markets/test_runpod_bids.py; here rents are on demand",
    "MC-13": "its catalogue shows the ask, and floors come from a separate question",
    "MC-15": "the bid of a pod that runs cannot be changed",
    "MC-16": "it echoes no bid: floors are administered prices",
    "MC-17": "it names no host before one is rented: a pool takes many leases",
    "MC-18": "its catalogue is whole, no sample",
    "MC-19": "it rents out no disks",
    "MC-22": "it has no search grammar; a query is for Vast.ai alone",
    "MC-23": "its rows are not rationed",
    "MC-24": "its rows are not rationed",
    "MC-25": "its rows are not rationed",
    "MC-27": "its listing has no pages",
    "MC-29": "its account comes from a route with several questions; the transport that asks again is the same",
    "MC-30": "it has no bids to change on a gone pod; tests/markets/test_runpod_orders.py has the other cases",
    "MC-31": "it queues no start: a full host refuses, and the lease is given up",
    "MC-32": "it keeps the last change of each pod, no inbox: tests/markets/test_runpod_bids.py",
    "MC-33": "a higher bid is a new start: tests/markets/test_runpod_bids.py",
    "MC-34": "a silent host shows only by its silence: tests/markets/test_runpod_reads.py",
    "MC-36": "its pods have no end date",
    "MC-39": "its traffic is free",
}
"""Cards that cannot hold of RunPod, each with the reason."""


class PodMarket(support.Market):
    """The control API, asked about RunPod."""

    async def weather(self, fault: str, **fields: Any) -> int:
        route = ROUTES.get(fields.get("route", ""))
        return await super().weather(fault, **fields | {"market": "runpod"} | ({"route": route} if route else {}))

    async def truth(self) -> dict[str, Any]:
        return dict((await super().truth())["runpod"])


class PodBench(Bench):
    """A bench whose instances are pods."""

    penalty = 15.0
    taken = "no_capacity"
    doubtful = ("html_403", "server_error_before", "truncated", "reset")
    """An action that was done is answered by its status alone, so a body that is no JSON leaves no doubt."""

    async def rent(self, offer: Offer, bid: UsdPerHour | None = None, label: str = LABEL) -> str:
        """Rent on demand, or at a bid where one is given."""
        tenure = Tenure.ON_DEMAND if bid is None else Tenure.INTERRUPTIBLE
        return await self.market.rent(offer, Terms(tenure, bid, DISK_GB, "ubuntu:22.04"), label)

    async def running(self, instance_id: str) -> Instance:
        await self.market.instances()
        return await self.until(instance_id, InstanceState.RUNNING, within=86_400.0)

    async def on_demand_rival(self, offer: Offer | Instance) -> int:
        """Let others take a whole pool on demand: a bidder would yield to who comes on demand after it."""
        where = names.pool(offer.host_id)
        assert where is not None
        world = self.simulated.simulator.pods
        taken = 0
        for host in world.hosts.values():
            if (host.gpu.type_id, host.cloud.value) != (where.gpu_type, where.cloud):
                continue
            counts = range(host.gpu_count, 0, -1)
            count = next((one for one in counts if world.stock.yielding(host, one, None) is not None), 0)
            if count:
                taken = world.add_rival(host.machine_id, count, on_demand=True)
        return taken

    async def calls(self, method: str, part: str) -> int:
        method, path = CALLS.get((method, part), (method, part))
        calls = (await self.simulated.truth())["calls"]
        return sum(call["method"] == method and call["path"].endswith(path) for call in calls)

    def orders(self, instance_id: str) -> dict[tuple[str, str], Callable[[], Awaitable[Any]]]:
        path = f"/v2/pods/{instance_id}/action"
        return {("POST", path): lambda: self.market.pause(instance_id)}


@contextlib.asynccontextmanager
async def runpod_bench(
    *,
    doors: Callable[[], call_gate.Gate] = call_gate.Gate,
    key: str = call_gate.DEFAULT_KEY,
    credit: float | None = None,
    daily_rows: int = 0,
) -> AsyncIterator[Bench]:
    """Set up a bench; rows are not rationed here, and `doors` are Vast's."""
    del daily_rows
    clock = SteppedClock(datetime.fromtimestamp(support.START, UTC))
    world = World(OF_THE_PAST, seed=11, start=support.START, hosts=1)
    rented = pods.World(OF_THE_PAST, seed=11, start=support.START, credit=credit)
    async with (
        Simulator(world, clock, seed=11, gate=doors(), pods=rented) as simulator,
        aiohttp.ClientSession() as session,
    ):
        ours = runpod.connect(simulator.runpod_url, lambda: key, clock, lambda: 0.5)
        try:
            yield PodBench(market=ours, simulated=PodMarket(simulator, session), clock=clock)
        finally:
            await ours.close()
