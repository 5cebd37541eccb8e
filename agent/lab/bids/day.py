"""A rehearsed day of the auction under one strategy, in memory: the daemon's own cycle without a ledger.

A poll is left out if the daemon would see the same as in its last two looks and would not search: one lease runs, and
nothing was due for it on the market. `tests/lab/test_bids_day.py` proves that the decisions and their times are the
same. A silent host counts as lost from the last look, and so one poll earlier.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from agent.clock import SteadyClock, SteppedClock
from agent.decide.reconcile import reconcile
from agent.decide.strategy import Tuned
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Requirements, Workload
from agent.lab.bids import waste
from agent.lab.bids.bid_market import WorldMarket
from agent.lab.engine.engine import Engine
from agent.markets import port
from agent.observe import poller
from agent.simulator import climate_files
from agent.simulator.vast.world import World

START = datetime(2026, 7, 27, tzinfo=UTC)
"""First instant of rehearsals."""
IMAGE = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
MODELS = ("RTX 4090", "RTX 3090")
CHECKPOINT = Checkpoint(timedelta(minutes=15), timedelta(seconds=60), 2.0, CheckpointPlace.REMOTE)
BUSY = timedelta(seconds=2)
"""The time from a write to the next cycle, as in the daemon."""
LOOK_AROUND = timedelta(seconds=min(poller.SURVEY_OF_DEAR_EVERY, poller.SURVEY_EVERY))
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


@dataclass(frozen=True, slots=True)
class Lived:
    """The result of a day under one strategy: dollars by purpose, and its counts."""

    split: waste.Split
    charged: float
    losses: int
    leases: int
    on_demand_hours: float


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


class Day:
    """A running day: the market, and its engine."""

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
        self.clock = SteppedClock(START) if clock is None else clock
        seen = self.market if through is None else through
        eyes = poller.Poller(seen, SteadyClock(self.clock), "", lambda _: "")
        self.may_skip = through is None
        self._asked_at = self._looked_at = START
        self._seen, self._was_quiet = (0, 0, 0, 0), False
        self.engine = Engine(seen, (replace(setting.work, strategy=strategy),), tuned, START, poller=eyes)

    def live(self) -> Lived:
        """Run the day and return its result."""
        while self.clock.now() < self.setting.end:
            self.step()
        return self.result_so_far()

    def step(self) -> None:
        """Run one cycle, unless nothing can have changed. Then let time pass until the next."""
        now = self.clock.now()
        before = len(self.engine.decisions)
        if not self._is_quiet(now):
            self._look(now)
        wait = BUSY if len(self.engine.decisions) > before else self.setting.poll
        self.clock.advance(min(wait, self.setting.end - now).total_seconds())
        self.world.advance_to(self.clock.time())

    def _look(self, now: datetime) -> None:
        asked, seen = self.market.searches, self._mark()
        self.engine.cycle(now)
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
        if now - self._asked_at <= poller.OFFERS_KEPT:
            return False
        if (now - self._asked_at) // LOOK_AROUND > (self._looked_at - self._asked_at) // LOOK_AROUND:
            return False
        leases = self.engine.book.leases
        return len(leases) == 1 and all(_is_settled(lease, now) for lease in leases.values())

    def parts(self) -> Iterable[waste.Part]:
        """Return the payments so far, in parts."""
        contracts = self.world.contracts.values()
        speeds = {each.contract_id: each.host.dlperf_per_gpu * each.slice.num_gpus for each in contracts}
        return waste.parts(
            self.world.turns(), speeds, self.market.stops, self.setting.work.checkpoint, self.clock.time()
        )

    def result_so_far(self) -> Lived:
        """Return the result so far."""
        world = self.world
        contracts = world.contracts.values()
        return Lived(
            split=waste.split(self.parts()),
            charged=world.charged_total(),
            losses=len(self.engine.book.losses),
            leases=len(world.contracts),
            on_demand_hours=sum(each.worked + world.running_seconds(each) for each in contracts if not each.is_bid)
            / 3600,
        )


def _is_settled(lease: Lease, now: datetime) -> bool:
    """Return whether a lease runs at an unforced bid, on a host that stays, and needs no metering."""
    is_calm = lease.state is LeaseState.RUNNING and lease.rival_floor is None
    is_metered = now - lease.accrued_until < reconcile.METER_EVERY
    return is_calm and is_metered and (lease.ends_at is None or lease.ends_at - now > ENDS_SOON)
