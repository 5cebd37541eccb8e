"""A course: the offers of one pool of a market at each instant, in ticks, recorded or drawn.

Spells with and without capacity are drawn from a Lomax distribution, so the hazard of an end falls with age as
kappa / (age + s). That is the shape of public spot traces, and the default figures are in the ranges fitted to those.
Semi-synthetic: no public record of bids exists.
"""

import bisect
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.domain import money
from agent.domain.money import UsdPerHour
from agent.lab.traces.trace_files import Trace


@dataclass(frozen=True, slots=True)
class Course:
    """Available instances in each tick, and the prices of interruptible and on-demand ones.

    The last tick never ends. `floors` has one price, or one for each tick.
    """

    start: datetime
    gap: timedelta
    available: Sequence[int]
    floors: Sequence[UsdPerHour]
    ask: UsdPerHour

    def tick(self, at: datetime) -> int:
        """Return the tick of an instant."""
        return min(max(int((at - self.start) / self.gap), 0), len(self.available) - 1)

    def capacity(self, at: datetime) -> int:
        """Return the number of available interruptible instances at an instant."""
        return self.available[self.tick(at)]

    def floor(self, at: datetime) -> UsdPerHour:
        """Return the price of an interruptible instance at an instant."""
        return self.floors[min(self.tick(at), len(self.floors) - 1)]

    def turns(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Yield the ticks in (after, until] at which capacity changes."""
        first = max(self.tick(after), 0)
        for tick in range(first + 1, self.tick(until) + 1):
            if self.available[tick] != self.available[tick - 1]:
                yield self.start + tick * self.gap


@dataclass(frozen=True, slots=True)
class Spells:
    """Lomax figures of spells in hours: hazard kappa / (age + s)."""

    kappa: float = 0.9
    s: float = 0.4
    longest: float = 48.0

    def draw(self, lots: random.Random) -> float:
        """Return the hours of one spell."""
        return min(self.s * math.expm1(-math.log1p(-lots.random()) / self.kappa), self.longest)


UP, DOWN = Spells(0.8, 0.5), Spells(0.9, 0.4)
GAP = timedelta(minutes=5)
FLOOR, ASK = UsdPerHour(973_100), UsdPerHour(3_060_000)
"""The prices of a V100 in the public traces."""


def of_trace(trace: Trace, *, hours: float) -> Course:
    """Return the first hours of a trace as a course. An unknown price is one dollar, or three on demand."""
    count = max(int(hours * 3600 / trace.gap_seconds), 1)
    floors = [1.0 if math.isnan(price) else float(price) for price in trace.spot_prices[:count]]
    ask = float(trace.on_demand_prices[0])
    return Course(
        trace.start,
        timedelta(seconds=trace.gap_seconds),
        tuple(int(each) for each in trace.available[:count]),
        tuple(money.per_hour(price) for price in floors),
        money.per_hour(3.0 if math.isnan(ask) else ask),
    )


def drawn(seed: str, start: datetime, hours: float, *, up: Spells = UP, down: Spells = DOWN) -> Course:
    """Return a course of one instance that comes and goes in spells. Equal seeds give equal courses."""
    lots = random.Random(f"{seed}/course")
    ends: list[float] = []
    is_up_first = lots.random() < 0.5  # noqa: PLR2004 - a fair coin
    at, is_up, step = 0.0, is_up_first, GAP / timedelta(hours=1)
    while at < hours:
        at += max((up if is_up else down).draw(lots), step)
        ends.append(at)
        is_up = not is_up
    count = max(math.ceil(hours / step), 1)
    spells = (bisect.bisect_right(ends, (tick + 0.5) * step) for tick in range(count))
    available = tuple(int((spell % 2 == 0) == is_up_first) for spell in spells)
    return Course(start, GAP, available, (FLOOR,), ASK)


@dataclass(frozen=True, slots=True)
class Delays:
    """The delays of starts, in seconds: log-normal around a median, never longer than `longest`."""

    median: float = 180.0
    spread: float = 0.7
    longest: float = 1100.0

    def draw(self, seed: str, host_id: str, turn: int) -> timedelta:
        """Return the delay of a host's n-th start, which is the same under every strategy."""
        lots = random.Random(f"{seed}/{host_id}/{turn}")
        return timedelta(seconds=min(self.median * math.exp(self.spread * lots.gauss(0.0, 1.0)), self.longest))
