"""A day of timed auctions under one strategy, in memory.

The market shows nothing of a container that does not start, and a guard would. So no image fails to load here.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from agent.clock import SteppedClock
from agent.decide.strategy import Tuned
from agent.domain.market import gpu
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Requirements, Workload
from agent.lab.bids import day, running_day
from agent.lab.bids.auctions import auction_rows, limit_rules
from agent.lab.bids.auctions.auction_market import AuctionMarket
from agent.markets import port
from agent.simulator import climate_files
from agent.simulator.instances.billing import Turn
from agent.simulator.mithril import places
from agent.simulator.mithril.world import World

MACHINES: Mapping[str, tuple[str, int]] = {"1x A100": ("A100 SXM4", 1), "8x H100": ("H100 SXM", 8)}
"""The machines of the bench: the smallest one that is sold in several regions, and the largest."""


def reserved_cents(machine: str) -> int:
    """Return the price of a reservation of a machine, cents per hour: the recorded one, or that of its GPUs."""
    model, gpus = MACHINES[machine]
    prices = [
        pool.reserved_cents
        for pool in places.POOLS
        if pool.kind.gpu_count == gpus and auction_rows.model(pool) == gpu.model(model)
    ]
    return min(prices)


def workload(machine: str, value: UsdPerHour | None) -> Workload:
    """Return the workload of the bench: one slot; `value` is the worth of an hour of work, None for `max_price`."""
    model, gpus = MACHINES[machine]
    return replace(
        day.workload(""),
        max_price=limit_rules.MOST,
        value_per_hour=value,
        requirements=Requirements(gpu_models=(gpu.model(model),), gpus=gpus),
    )


@dataclass(frozen=True, slots=True)
class Setting:
    """A climate, a seed, a machine, what an hour of its work is worth, and the length and poll of a day."""

    climate: str
    seed: int
    machine: str
    value: UsdPerHour | None = None
    hours: float = 24.0
    poll: timedelta = timedelta(seconds=60)

    @property
    def course(self) -> running_day.Course:
        """What runs, and for how long."""
        return running_day.Course(workload(self.machine, self.value), self.hours, self.poll)

    @property
    def world(self) -> World:
        """The market when the day begins."""
        weather = replace(climate_files.named(self.climate), pull_failure_probability=0.0)
        return World(weather, seed=self.seed, start=running_day.START.timestamp())


class AuctionDay(running_day.RunningDay):
    """A running day of timed auctions: the market, and its engine."""

    def __init__(
        self,
        setting: Setting,
        strategy: str,
        tuned: Mapping[str, Tuned],
        *,
        world: World | None = None,
        through: port.Market | None = None,
        clock: SteppedClock | None = None,
    ) -> None:
        """Begin the day in the setting's world or in another one. The market in memory reads that world."""
        self.world = setting.world if world is None else world
        self.market = AuctionMarket(self.world)
        super().__init__(setting.course, strategy, tuned, self.market if through is None else through, clock)

    def pass_time(self) -> None:
        """Move the world to the clock's instant."""
        self.world.advance_to(self.clock.time())

    def turns(self) -> Sequence[Turn]:
        """Return the world's billing records."""
        return self.world.fleet.till.turns

    def speeds(self) -> Mapping[int, float]:
        """Return the DLPerf of each bid's machine."""
        return {bid.contract_id: auction_rows.dlperf(bid.pool) for bid in self.world.bids.values()}

    def stops(self) -> Collection[tuple[int, float]]:
        """Return the bids that we ourselves stopped or ended, and when."""
        return self.market.stops

    def charged(self) -> float:
        """Return every dollar that the world charged."""
        return self.world.charged_total()
