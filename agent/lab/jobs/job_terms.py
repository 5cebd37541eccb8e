"""A job: the terms that every policy knows, and the window of the pools over which it runs.

Units: seconds for time, dollars for money (estimates, never sums that are paid), $/h for prices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
import numpy.typing as npt

from agent.lab.bench import blocks

Grid = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Tick = tuple[Sequence[bool], Sequence[float], Sequence[float]]
"""One tick by pool: capacity, interruptible price and on-demand price in $/h."""
HOUR = 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that a policy knows before the first tick."""

    pools: tuple[str, ...]
    tick: int
    """Seconds of a tick."""
    work: int
    """Seconds of work."""
    deadline: int
    """Seconds allowed."""
    overhead: int
    """Seconds that each start spends before work advances. Overhead longer than a tick carries over."""
    egress: Grid
    """Dollars of moving the checkpoint from pool i to pool j: 0 on the diagonal, never more than by way of a third."""
    counts_part: bool = False
    """Whether a last tick that the deadline cuts short counts up to the deadline. Else only whole ticks count."""

    @property
    def ticks(self) -> int:
        """Whole ticks until the deadline."""
        return self.deadline // self.tick

    @property
    def counted(self) -> int:
        """Seconds within which work counts as done in time."""
        return self.deadline if self.counts_part else self.ticks * self.tick


@dataclass(frozen=True)
class Course:
    """The pools over time, by tick and pool: capacity, interruptible price and on-demand price in $/h."""

    up: Flags
    spot: Grid
    on_demand: Grid

    @cached_property
    def rows(self) -> tuple[Tick, ...]:
        """The ticks as plain numbers. A run reads each once, and small arrays are slow."""
        columns = (tuple(map(tuple, each.tolist())) for each in (self.up, self.spot, self.on_demand))
        return tuple(zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of pools that share their time. `first` is its first tick in the record."""

    pools: tuple[str, ...]
    tick: int
    first: int
    course: Course
    start: datetime = _EPOCH

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The beginning and end of the window."""
        return self.start, self.start + timedelta(seconds=self.tick * len(self.course.up))

    @property
    def block(self) -> int:
        """The four days of the record in which the window begins."""
        return blocks.of(self.first * self.tick / HOUR)


@dataclass(frozen=True, slots=True)
class JobCase:
    """A job over a window. `cluster` names the cases that are not independent of it, `group` the similar cases."""

    key: str
    cluster: str
    group: str
    terms: Terms
    window: Window

    @property
    def course(self) -> Course:
        """The pools over the window."""
        return self.window.course

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The beginning and end of its window."""
        return self.window.span
