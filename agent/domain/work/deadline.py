"""A deadline: work that must be done by a time, and what is known of how far it is.

Hours of work are hours on the reference GPU; how fast another GPU does them is measured.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache

from agent.domain.market.gpu import GpuModel

PLACE = "{hours}"
"""What stands in `line` where the log has the number."""
MOST_HOURS = 1e6
_NUMBER = r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)(?![0-9.])"


class ProgressSign(Enum):
    """How a workload tells how far it is; a person may always tell."""

    ORDER = "order"
    LOG = "log"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class Deadline:
    """`hours` of work on `reference_gpu` (on what runs, where none is named) must be done `by` a time.

    `restart` is what an interruption costs at most: the work since the last checkpoint and the restore; None takes both
    from the workload's promise about checkpoints. `line` is text of a log line with `{hours}` in it; `port` and `path`
    answer with the number, alone or as {"hours": 1.5}.
    """

    hours: float
    by: datetime
    reference_gpu: GpuModel | None = None
    restart: timedelta | None = None
    sign: ProgressSign = ProgressSign.ORDER
    line: str = ""
    port: int = 0
    path: str = "/"

    @property
    def is_asked(self) -> bool:
        """Whether progress has to be looked for."""
        return self.sign is not ProgressSign.ORDER

    def hours_in(self, line: str) -> float | None:
        """Return the hours that a log line tells, or None."""
        found = _pattern(self.line).search(line)
        return None if found is None else float(found.group(1))


@lru_cache(maxsize=256)
def _pattern(line: str) -> re.Pattern[str]:
    before, _, after = line.partition(PLACE)
    # Both sides are literal text, the number is bounded: no log can make this slow.
    rest = r"\s*" + re.escape(after.strip()) if after.strip() else ""
    return re.compile(re.escape(before.rstrip()) + _NUMBER + rest)


def is_hours(hours: float) -> bool:
    """Return whether a number can be hours done."""
    return 0.0 <= hours <= MOST_HOURS


@dataclass(frozen=True, slots=True)
class Progress:
    """The last that was told of a workload: `hours` done, by whom (`source`), and since when it is looked after.

    `lease_id` is the lease whose log or page told it, empty where a person did.
    """

    workload: str
    hours: float
    told_at: datetime
    since: datetime
    source: str = ""
    lease_id: str = ""


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured of a workload on one GPU model: `hours` of work done in `running_hours`."""

    workload: str
    gpu: GpuModel
    hours: float = 0.0
    running_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """How long the first start of a lease took, from its rent until it ran."""

    lease_id: str
    market: str
    at: datetime
    seconds: float
