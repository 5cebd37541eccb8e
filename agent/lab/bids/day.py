"""A rehearsed day of the auction under one strategy, in memory: the daemon's own cycle without a ledger.

A poll is left out if the daemon would see the same as in its last two looks and would not search: one lease runs, and
nothing was due for it on the market. `tests/lab/test_bids_day.py` proves that the decisions and their times are the
same. A silent host counts as lost from the last look, and so one poll earlier.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.clock import SteppedClock
from agent.decide.reconcile import reconcile
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload
from agent.lab.bids import running_day
from agent.lab.bids.bid_market import WorldMarket
from agent.markets import port
from agent.observe import search_queue
from agent.simulator import climate_files
from agent.simulator.instances.billing import Turn
from agent.simulator.vast.world import World

START = running_day.START
"""First instant of rehearsals."""
IMAGE = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
MODELS = ("RTX 4090", "RTX 3090")
CHECKPOINT = Checkpoint(timedelta(minutes=15), timedelta(seconds=60), 2.0, CheckpointPlace.REMOTE)
LOOK_AROUND = timedelta(seconds=min(search_queue.SURVEY_OF_DEAR_EVERY, search_queue.SURVEY_EVERY))
"""A search without a need comes at a whole multiple of this after the last search."""
ENDS_SOON = timedelta(hours=3)
"""A lease whose host leaves the market sooner may be moved for that reason."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A climate, a seed, the length and poll of a day, and the workload."""

    climate: str
    seed: int
    hours: float = 24.0
    poll: timedelta = timedelta(seconds=60)
    work: Workload = field(default_factory=lambda: workload(""))
    """The workload: the bench's, or the operator's own."""

    @property
    def world(self) -> World:
        """The market when the day begins."""
        return World(climate_files.named(self.climate), seed=self.seed, start=START.timestamp())

    @property
    def end(self) -> datetime:
        """When it ends."""
        return START + timedelta(hours=self.hours)


def workload(strategy: str) -> Workload:
    """Return the workload of the bench: the shipped configuration's, on either of two cards."""
    return Workload(
        name="train",
        image=IMAGE,
        max_price=money.per_hour("0.45"),
        strategy=strategy,
        requirements=Requirements(
            gpu_models=tuple(map(gpu.model, MODELS)),
            min_vram_mb=24_000,
            min_reliability=0.95,
            min_inet_down_mbps=100.0,
        ),
        disk_gb=40.0,
        image_gb=5.0,
        checkpoint=CHECKPOINT,
    )


class Day(running_day.RunningDay):
    """A running day of the auction of hosts: the market, and its engine."""

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
        self.setting = setting
        self.world = setting.world if world is None else world
        self.market = WorldMarket(self.world)
        self.may_skip = through is None
        self._asked_at = self._looked_at = START
        self._seen, self._was_quiet = (0, 0, 0, 0), False
        course = running_day.Course(setting.work, setting.hours, setting.poll)
        super().__init__(course, strategy, tuned, self.market if through is None else through, clock)

    def look(self, now: datetime) -> None:
        """Run the cycle of an instant, unless nothing can have changed."""
        if self._is_quiet(now):
            return
        asked, seen = self.market.searches, self._mark()
        super().look(now)
        if self.market.searches > asked:
            self._asked_at = now
        self._was_quiet = self._seen == seen == self._mark()
        self._seen, self._looked_at = self._mark(), now

    def _mark(self) -> tuple[int, int, int, int]:
        """Return a number that grows with every event, action and request."""
        world = self.world
        return len(world.turns()), len(world.inbox), len(self.engine.decisions), self.market.searches

    def _is_quiet(self, now: datetime) -> bool:
        if not (self.may_skip and self._was_quiet and self._seen == self._mark()):
            return False
        if now - self._asked_at <= search_queue.OFFERS_KEPT:
            return False
        if (now - self._asked_at) // LOOK_AROUND > (self._looked_at - self._asked_at) // LOOK_AROUND:
            return False
        leases = self.engine.book.leases
        return len(leases) == 1 and all(_is_settled(lease, now) for lease in leases.values())

    def pass_time(self) -> None:
        """Move the world to the clock's instant."""
        self.world.advance_to(self.clock.time())

    def turns(self) -> Sequence[Turn]:
        """Return the world's billing records."""
        return self.world.turns()

    def speeds(self) -> Mapping[int, float]:
        """Return the DLPerf of each contract."""
        contracts = self.world.contracts.values()
        return {each.contract_id: each.host.dlperf_per_gpu * each.slice.num_gpus for each in contracts}

    def stops(self) -> Collection[tuple[int, float]]:
        """Return the contracts that we ourselves stopped or ended, and when."""
        return self.market.stops

    def charged(self) -> float:
        """Return every dollar that the world charged."""
        return self.world.charged_total()

    def on_demand_hours(self) -> float:
        """Return the hours that ran on demand."""
        contracts = self.world.contracts.values()
        return sum(each.worked + self.world.running_seconds(each) for each in contracts if not each.is_bid) / 3600


def _is_settled(lease: Lease, now: datetime) -> bool:
    """Return whether a lease runs at an unforced bid, on a host that stays, and needs no metering."""
    is_calm = lease.state is LeaseState.RUNNING and lease.rival_floor is None
    is_metered = now - lease.accrued_until < reconcile.METER_EVERY
    return is_calm and is_metered and (lease.ends_at is None or lease.ends_at - now > ENDS_SOON)
