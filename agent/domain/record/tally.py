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


OF_THE_WORKLOAD = frozenset({Counted.FAST_EXIT, Counted.FAILED_START})
"""What counts against a workload; what was counted is forgotten when an operator lets the workload go on."""


AT_A_PLACE = frozenset({Counted.RAN, Counted.FAST_EXIT, Counted.FAILED_START})
"""What counts once for each host or lease on which it happened."""
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
    """The lease or host on which it happened, where it counts once for each of them."""
    count: int = 1
    """How often it happened."""

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key: what happened again at one place is counted there."""
        return self.counted.value, f"{self.of}{AT}{self.where}" if self.where else self.of
