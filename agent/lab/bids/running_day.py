"""A day on a market in memory under one strategy: the daemon's own cycle without a ledger, from poll to poll.

After each cycle that sent an order the next one follows at once, as live. Then the market's time moves on.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from agent.clock import SteadyClock, SteppedClock
from agent.decide.strategy import Tuned
from agent.domain.work.workload import Workload
from agent.lab.bids import waste
from agent.lab.engine.engine import Engine
from agent.markets import port
from agent.observe import poller
from agent.simulator.instances.billing import Turn

START = datetime(2026, 7, 27, tzinfo=UTC)
"""First instant of rehearsals."""
BUSY = timedelta(seconds=2)
"""The time from a write to the next cycle, as in the daemon."""


@dataclass(frozen=True, slots=True)
class Course:
    """What runs, how long it runs, and the time between two polls."""

    work: Workload
    hours: float
    poll: timedelta

    @property
    def end(self) -> datetime:
        """When the day ends."""
        return START + timedelta(hours=self.hours)


@dataclass(frozen=True, slots=True)
class Lived:
    """The result of a day under one strategy: dollars by purpose, and its counts."""

    split: waste.Split
    charged: float
    losses: int
    leases: int
    on_demand_hours: float


class RunningDay(ABC):
    """A running day: its engine and its clock. A market of its own says how time passes there and what it billed."""

    def __init__(
        self,
        course: Course,
        strategy: str,
        tuned: Mapping[str, Tuned],
        market: port.Market,
        clock: SteppedClock | None = None,
    ) -> None:
        """Begin the day on a market."""
        self.course = course
        self.clock = SteppedClock(START) if clock is None else clock
        eyes = poller.Poller(market, SteadyClock(self.clock), "", lambda _: "")
        self.engine = Engine(market, (replace(course.work, strategy=strategy),), tuned, START, poller=eyes)

    def live(self) -> Lived:
        """Run the day and return its result."""
        while self.clock.now() < self.course.end:
            self.step()
        return self.result_so_far()

    def step(self) -> None:
        """Run one cycle. Then let time pass until the next."""
        now = self.clock.now()
        before = len(self.engine.decisions)
        self.look(now)
        wait = BUSY if len(self.engine.decisions) > before else self.course.poll
        self.clock.advance(min(wait, self.course.end - now).total_seconds())
        self.pass_time()

    def look(self, now: datetime) -> None:
        """Run the cycle of an instant."""
        self.engine.cycle(now)

    def parts(self) -> Iterable[waste.Part]:
        """Return the payments so far, in parts."""
        return waste.parts(self.turns(), self.speeds(), self.stops(), self.course.work.checkpoint, self.clock.time())

    def result_so_far(self) -> Lived:
        """Return the result so far."""
        return Lived(
            split=waste.split(self.parts()),
            charged=self.charged(),
            losses=len(self.engine.book.losses),
            leases=len(self.speeds()),
            on_demand_hours=self.on_demand_hours(),
        )

    @abstractmethod
    def pass_time(self) -> None:
        """Move the market to the clock's instant."""

    @abstractmethod
    def turns(self) -> Sequence[Turn]:
        """Return the market's own billing records."""

    @abstractmethod
    def speeds(self) -> Mapping[int, float]:
        """Return the DLPerf of each contract, by its number."""

    @abstractmethod
    def stops(self) -> Collection[tuple[int, float]]:
        """Return the contracts that we ourselves stopped or ended, and when."""

    @abstractmethod
    def charged(self) -> float:
        """Return every dollar that the market charged."""

    def on_demand_hours(self) -> float:
        """Return the hours that ran on demand."""
        return 0.0
