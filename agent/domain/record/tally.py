"""A tally: a count that the ledger keeps for a while. By itself it forbids nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from agent.domain.record.expiry import Expiring


class Counted(StrEnum):
    """The kinds of tallies."""

    RAN = "ran"
    """A lease on which a slot began to run. They bound the moves of a slot in a day.

    One that counts for an array by its name is a lease that ran long enough to show that its command works.
    """
    DOUBTED = "doubted"
    """An array that a person resumed: its command may be another one now, so what was done before proves nothing."""
    STARTED = "started"
    """A confirmed start of a lease that does not run yet."""
    TAKEN_BACK = "taken_back"
    """A start, by its intent, whose answer was lost and that a confirmed pause of ours took back."""
    FAST_EXIT = "fast_exit"
    """A host on which a workload ended at once."""
    FAILED_START = "failed_start"
    """A lease of a workload that did not start."""
    FAILED_TASK = "failed_task"
    """A lease on which a task of an array failed. A fast exit of one that works otherwise counts for its slot too."""
    AVOIDED = "avoided"
    """A host on which a task of an array failed: its workload's next starts go to others."""
    MOVED = "moved"
    """The one move that a slot of a service has had in this cool-off."""
    UNDERBID = "underbid"
    """Bids on an offer that were refused as too low: its quote may stay stale for hours."""
    UNTAKEN = "untaken"
    """Refused requests of one kind of order for a lease, since the first of them."""
    STALLED = "stalled"
    """Measures that were taken because the work of a slot stalled, also on earlier leases."""


OF_THE_WORKLOAD = frozenset({Counted.FAST_EXIT, Counted.FAILED_START, Counted.AVOIDED})
"""Tallies against a workload. They are forgotten when an operator resumes the workload."""
OF_A_TASK = frozenset({Counted.FAST_EXIT, Counted.FAILED_TASK})
"""Tallies against one task of an array, by its slot. They are forgotten when an operator resumes the slot."""
OF_A_SLOT = OF_A_TASK | {Counted.STALLED}
"""Tallies against one slot of any workload. They are forgotten likewise."""

BY_NAME = OF_THE_WORKLOAD | OF_A_SLOT | {Counted.RAN, Counted.MOVED, Counted.DOUBTED}
"""Tallies that count for a workload or a slot by its name. They follow a workload to its new name."""

AT_A_PLACE = frozenset(
    {
        Counted.RAN,
        Counted.FAST_EXIT,
        Counted.FAILED_START,
        Counted.FAILED_TASK,
        Counted.AVOIDED,
        Counted.UNTAKEN,
        Counted.UNDERBID,
    }
)
"""Tallies that count separately for each host or lease on which they happened, each kind of order or each bid."""
AT = "@"
"""The separator in a key between the subject, in which it is escaped, and the place."""
_ESCAPES = (("%", "%25"), (AT, "%40"))
"""A market's id of an offer may contain any of these."""


@dataclass(frozen=True, slots=True)
class Tally(Expiring):
    """One tally, which counts until `until`."""

    counted: Counted
    of: str
    """The slot, workload, lease or offer that it counts for."""
    since: datetime
    """When it was first counted."""
    until: datetime  # pyright: ignore[reportIncompatibleVariableOverride]
    ground: str
    """The event that was counted."""
    where: str = ""
    """The lease or host on which it happened, the kind of order, or the bid in micro-dollars an hour, for a tally that
    counts separately for each."""
    count: int = 1
    """The number of times that it happened."""

    @property
    def place(self) -> tuple[str, str]:
        """The scope and the key. A repetition at one place counts there."""
        return place_of(self.counted, self.of, self.where)

    @property
    def workload(self) -> str:
        """The workload for which, or for a slot of which, it counts; empty for any other tally."""
        return self.of.partition("/")[0] if self.counted in BY_NAME else ""

    def is_against(self, workload: str, names: Collection[str]) -> bool:
        """Return whether it counts against a workload, or against a slot among these slots and workloads."""
        is_of_slot = self.counted in OF_A_SLOT and (self.of in names or self.of.partition("/")[0] in names)
        return is_of_slot or (self.counted in OF_THE_WORKLOAD and self.of == workload)

    def proves(self, workload: str) -> bool:
        """Return whether it says that an array's command works; a person who resumes the array may have changed it."""
        return self.counted is Counted.RAN and self.of == workload


def place_of(counted: Counted, of: str, where: str = "") -> tuple[str, str]:
    """Return scope and key of a tally."""
    if counted not in AT_A_PLACE:
        return counted.value, of
    for plain, escaped in _ESCAPES:
        of = of.replace(plain, escaped)
    return counted.value, f"{of}{AT}{where}" if where else of


def parts_of(counted: Counted, key: str) -> tuple[str, str]:
    """Return the subject and the place of a tally from its key."""
    if counted not in AT_A_PLACE:
        return key, ""
    of, _, where = key.partition(AT)
    for plain, escaped in reversed(_ESCAPES):
        of = of.replace(escaped, plain)
    return of, where
