"""What a job over several pools is: the terms everybody knows, and one case with what the pools had in each tick.

Units: seconds for time, dollars for money (estimates, never sums that are paid), $/h for prices.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

Grid = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
HOUR = 3600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_NAMED = 2


@dataclass(frozen=True, slots=True)
class Terms:
    """What a policy knows before the first tick.

    `work`, `deadline` and `overhead` (of a start, before work advances) in seconds; `egress[i, j]` in dollars for
    moving the checkpoint from pool i to pool j, zero on the diagonal and never dearer than by way of a third pool.
    """

    pools: tuple[str, ...]
    tick: int
    work: int
    deadline: int
    overhead: int
    egress: Grid

    @property
    def ticks(self) -> int:
        """Whole ticks until the deadline."""
        return self.deadline // self.tick


@dataclass(frozen=True, slots=True)
class Course:
    """What the pools had, by tick and pool: capacity, interruptible price and on-demand price in $/h."""

    up: Flags
    spot: Grid
    on_demand: Grid


@dataclass(frozen=True, slots=True)
class PoolsCase:
    """One window of one set of pools. `cluster` names the 4 days it begins in: the pools of a set share their time."""

    key: str
    cluster: str
    terms: Terms
    course: Course
    start: datetime = _EPOCH

    @property
    def span(self) -> tuple[datetime, datetime]:
        """When it begins and ends."""
        return self.start, self.start + timedelta(seconds=self.terms.tick * len(self.course.up))

    @property
    def group(self) -> str:
        """Its pools, hours allowed and hours of overhead: what decides how much there is to win."""
        terms = self.terms
        zones = [pool.partition("_")[0] for pool in terms.pools]
        named = " + ".join(zones) if len(zones) <= MOST_NAMED else f"{len(zones)} pools"
        return f"{named}, {terms.deadline / HOUR:g} h allowed, {terms.overhead / HOUR:g} h a start"
