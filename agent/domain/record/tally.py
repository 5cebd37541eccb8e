"""A tally: one more of something that is counted for a while; it keeps nothing from anybody by itself."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent.domain.record.expiry import Expiring


class Counted(StrEnum):
    """What is counted."""

    RAN = "ran"
    """A lease on which a slot began to run: these bound the moves of a slot in a day."""
    STARTED = "started"
    """A start of a lease that the market confirmed and that has not come to run."""
    FAST_EXIT = "fast_exit"
    """A host on which a workload ended at once."""
    FAILED_START = "failed_start"
    """A lease of a workload that did not start."""
    MOVED = "moved"
    """The one move that a slot of a service has had in this cool-off."""
    UNDERBID = "underbid"
    """Bids on an offer that were refused as too low: its quote may stay stale for hours."""
    UNTAKEN = "untaken"
    """Orders of a kind for a lease that its market does not take, since the first of them."""


OF_THE_WORKLOAD = frozenset({Counted.FAST_EXIT, Counted.FAILED_START})
"""What counts against a workload; what was counted is forgotten when an operator lets the workload go on."""


AT_A_PLACE = frozenset({Counted.RAN, Counted.FAST_EXIT, Counted.FAILED_START, Counted.UNTAKEN})
"""What counts by itself for each host or lease on which it happened, or for each kind of order."""
AT = "@"
"""Stands in a key between what it counts for, which has none, and where it happened."""


@dataclass(frozen=True, slots=True)
class Tally(Expiring):
    """One more of what is counted, until `until`."""

    counted: Counted
    of: str
    """The slot, workload, lease or offer that it counts for."""
    since: datetime
    """When it was counted."""
    until: datetime
    ground: str
    """What happened."""
    where: str = ""
    """The lease or host on which it happened, or the kind of order, where it counts for each of them by itself."""
    count: int = 1
    """How often it happened."""

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key: what happened again at one place is counted there."""
        return place_of(self.counted, self.of, self.where)


def place_of(counted: Counted, of: str, where: str = "") -> tuple[str, str]:
    """Return scope and key of a tally."""
    return counted.value, f"{of}{AT}{where}" if where else of
