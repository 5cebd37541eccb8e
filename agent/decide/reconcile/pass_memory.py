"""The memory of reconcile between cycles. A restart forgets it and looks again, which is the safe side."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent.domain.record.lease import LeaseState
from agent.domain.work.stall import Quiet


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A lease seen once in a wrong state, or on terms that differ from its order as `differs` says.

    `previous` is when the lease was last seen as it should be. `is_unanswered` says that the market left a later
    question about it without an answer.
    """

    state: LeaseState
    seen_at: datetime
    previous: datetime
    differs: str = ""
    is_unanswered: bool = False


@dataclass(frozen=True, slots=True)
class Absence:
    """The start of an absence from the listings: monotonic seconds and the number of complete listings then."""

    monotonic: float
    listings: int
    in_fault: bool = False


@dataclass(frozen=True, slots=True)
class TermDoubt:
    """A listed term that is not believed yet: since when, its last listing, the number of listings, and a figure.

    The figure is the smaller the nearer a listed value is to the known one; the nearest so far is kept.
    """

    since: datetime
    seen_at: datetime
    listings: int
    nearest: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Suspicions and absences by lease, doubts by intent, sightings of orphans, the last listing by market.

    `label_looks` counts, by lease, the cycles in which a look by its id showed our label. `quiet` has, by lease, the
    time in which its work showed no progress.
    """

    suspicions: Mapping[str, Suspicion] = field(default_factory=dict)
    absences: Mapping[str, Absence] = field(default_factory=dict)
    doubts: Mapping[str, Absence] = field(default_factory=dict)
    orphan_sightings: Mapping[str, int] = field(default_factory=dict)
    label_looks: Mapping[str, int] = field(default_factory=dict)
    last_listed: Mapping[str, datetime] = field(default_factory=dict)
    last_seen: Mapping[str, datetime] = field(default_factory=dict)
    quiet: Mapping[str, Quiet] = field(default_factory=dict)
    term_doubts: Mapping[str, Mapping[str, TermDoubt]] = field(default_factory=dict)
