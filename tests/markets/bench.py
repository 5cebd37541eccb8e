"""The bench of a card: our market before the simulated one, over TCP, on one clock that tests move."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import aiohttp

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.markets.port import Market, Terms
from agent.markets.vast import market as vast
from agent.simulator.vast.http import call_gate
from agent.simulator.vast.world import World
from tests.markets.scene import LABEL, asked
from tests.support import market as support
from tests.support.steered import Simulator

HOSTS = 60
DISK_GB = 16.0


@dataclasses.dataclass(slots=True)
class Bench:
    """Our market, the simulated one with its control API, and the clock they share."""

    market: Market
    simulated: support.Market
    clock: SteppedClock

    penalty: ClassVar[float] = 12.0
    """Seconds that a closed lane stays so when the market names no time."""
    label: ClassVar[str] = LABEL
    """The label of a rent as the market shows it."""
    taken: ClassVar[str] = "no_such_ask"
    """The reason of a refusal if others hold the offered GPU."""
    doubtful: ClassVar[tuple[str, ...]] = ("html_403", "server_error_before", "malformed", "truncated", "reset")
    """The faults after which nobody knows whether an order was done."""

    async def offers(self, **changes: Any) -> list[Offer]:
        return list(await self.market.offers(asked(verified_only=False, **changes)))

    async def offer(self, **changes: Any) -> Offer:
        """Return one that can be bid for, has a known ask above the floor, and waits for a renter."""
        found = await self.offers(**changes)
        return next(o for o in found if o.floor is not None and o.ask is not None and o.floor < o.ask)

    async def rent(self, offer: Offer, bid: UsdPerHour | None = None, label: str = LABEL) -> str:
        """Rent at the floor's double, or at the bid."""
        assert offer.floor is not None
        terms = Terms(Tenure.INTERRUPTIBLE, bid or offer.floor.scaled(2.0), DISK_GB, "ubuntu:22.04")
        return await self.market.rent(offer, terms, label)

    async def running(self, instance_id: str) -> Instance:
        await self.simulated.running(int(instance_id))
        return await self.market.instance(instance_id)

    async def until(self, instance_id: str, state: InstanceState, within: float = 7200.0) -> Instance:
        waited = 0.0
        while (instance := await self.market.instance(instance_id)).state is not state:
            assert waited < within, instance
            await self.simulated.advance(30.0)
            waited += 30.0
        return instance

    def orders(self, instance_id: str) -> dict[tuple[str, str], Callable[[], Awaitable[Any]]]:
        """Return orders on an instance by the calls that they make."""
        return {
            ("PUT", "/instances/bid_price/"): lambda: self.market.rebid(instance_id, money.per_hour(1)),
            ("PUT", f"/instances/{instance_id}/"): lambda: self.market.pause(instance_id),
            ("DELETE", f"/instances/{instance_id}/"): lambda: self.market.release(instance_id),
        }

    async def contracts(self) -> list[dict[str, Any]]:
        """Return the live instances as they really are."""
        return [contract for contract in (await self.simulated.truth())["contracts"] if contract["ended"] is None]

    async def calls(self, method: str, part: str) -> int:
        calls = (await self.simulated.truth())["calls"]
        return sum(call["method"] == method and part in call["path"] for call in calls)

    async def on_demand_rival(self, offer: Offer | Instance) -> int:
        body = {"machine_id": int(offer.host_id), "on_demand": True}
        answer = await self.simulated.control("POST", "/rivals", body)
        assert answer.status == 200, answer.raw
        return int(answer.body["id"])

    async def rival(self, offer: Offer | Instance, bid: float) -> int:
        body = {"machine_id": int(offer.host_id), "gpus": offer.gpus, "bid": bid}
        answer = await self.simulated.control("POST", "/rivals", body)
        assert answer.status == 200, answer.raw
        return int(answer.body["id"])

    async def no_rival(self, rival_id: int) -> None:
        assert (await self.simulated.control("DELETE", f"/rivals/{rival_id}")).status == 200


@contextlib.asynccontextmanager
async def vast_bench(
    *,
    doors: Callable[[], call_gate.Gate] = call_gate.Gate,
    key: str = call_gate.DEFAULT_KEY,
    credit: float | None = None,
    daily_rows: int = 20_000,
) -> AsyncIterator[Bench]:
    clock = SteppedClock(datetime.fromtimestamp(support.START, UTC))
    world = World(support.STILL, seed=11, start=support.START, hosts=HOSTS, credit=credit)
    async with (
        Simulator(world, clock, seed=11, gate=doors()) as simulator,
        aiohttp.ClientSession() as session,
    ):
        ours = vast.connect(simulator.vast_url, lambda: key, clock, lambda: 0.5, daily_rows=daily_rows)
        try:
            yield Bench(ours, support.Market(simulator, session), clock)
        finally:
            await ours.close()
