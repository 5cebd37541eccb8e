"""A deadline: work that must be done by a time, and its known progress.

Hours of work are hours on the reference GPU. The speed of other GPUs is measured.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache

from agent.domain.market.gpu import GpuModel

PLACE = "{hours}"
"""The place of the number in `line`."""
MOST_HOURS = 1e6
MOST_TOLD_SHARE = 0.99
"""The largest share of the work that is believed done by a host's report: at the whole share, work would not start
again."""
_NUMBER = r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9.])"


class ProgressSign(Enum):
    """How a workload reports its progress; a person may always report it."""

    ORDER = "order"
    LOG = "log"
    HTTP = "http"
    GUARD = "guard"
    """By the number that its guard reads, which counts up to `total`."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """`hours` of work on `reference_gpu` (on the running GPU, if none is named) must be done `by` a time.

    `restart` is the most that an interruption costs: the work since the last checkpoint and the restore. None takes
    both from the workload's checkpoint figures. `line` is the text of a log line with `{hours}` in it. `port` and
    `path` answer with the number, alone or as {"hours": 1.5}.
    """

    hours: float
    by: datetime
    reference_gpu: GpuModel | None = None
    restart: timedelta | None = None
    sign: ProgressSign = ProgressSign.ORDER
    line: str = ""
    port: int = 0
    path: str = "/"
    total: float = 0.0
    """The guard's number when all is done; 0: it counts hours."""

    @property
    def is_asked(self) -> bool:
        """Whether the progress must be read from the log or a page."""
        return self.sign in {ProgressSign.LOG, ProgressSign.HTTP}

    def hours_of(self, progress: float) -> float:
        """Return the hours of a guard's number; never all of them, since only an end proves that."""
        share = progress / (self.total or self.hours)
        return min(max(share, 0.0), MOST_TOLD_SHARE) * self.hours

    def number_of(self, hours: float) -> float:
        """Return the guard's number for these hours."""
        return hours / self.hours * (self.total or self.hours)

    def hours_in(self, line: str) -> float | None:
        """Return the hours in a log line, or None."""
        match = _pattern(self.line).search(line)
        return None if match is None else float(match.group(1))


@lru_cache(maxsize=256)
def _pattern(line: str) -> re.Pattern[str]:
    before, _, after = line.partition(PLACE)
    # Both sides are literal text and the number is bounded, so no log can make this slow.
    rest = r"\s*" + re.escape(after.strip()) if after.strip() else ""
    return re.compile(re.escape(before.rstrip()) + _NUMBER + rest)


def is_hours(hours: float) -> bool:
    """Return whether a number can be hours done."""
    return 0.0 <= hours <= MOST_HOURS


@dataclass(frozen=True, slots=True)
class Progress:
    """The last report of a workload: `hours` done, its `source`, and since when the workload is known.

    `lease_id` is the lease whose log or page reported it, empty if a person did. `number` is the progress in the work's
    own unit, if its guard reported it.
    """

    workload: str
    hours: float
    told_at: datetime
    since: datetime
    source: str = ""
    lease_id: str = ""
    number: float | None = None


@dataclass(frozen=True, slots=True)
class Speed:
    """A measurement of a workload on one GPU model: `hours` of work done in `running_hours`."""

    workload: str
    gpu: GpuModel
    hours: float = 0.0
    running_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """The time of a lease's first start, from its rent until it ran."""

    lease_id: str
    market: str
    at: datetime
    seconds: float
