"""The memory of reconcile between cycles. A restart forgets it and looks again, which is the safe side."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from agent.domain.record.lease import LeaseState
from agent.domain.work.ready_sign import ReadyWait
from agent.domain.work.stall import Quiet

T = TypeVar("T")


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
class ListingMarks:
    """The marks that one listing of a market leaves: by lease, by intent, and by instance for orphans.

    `leases` are the open leases on the market, and `present` those that it listed.
    """

    market: str
    at: datetime
    leases: Collection[str]
    present: Collection[str]
    suspicions: Mapping[str, Suspicion]
    absences: Mapping[str, Absence]
    doubts: Mapping[str, Absence]
    orphan_sightings: Mapping[str, int]
    term_doubts: Mapping[str, Mapping[str, TermDoubt]]


@dataclass(frozen=True, slots=True)
class Memory:
    """Suspicions and absences by lease, doubts by intent, sightings of orphans, the last listing by market.

    `label_looks` counts, by lease, the cycles in which a look by its id showed our label. `quiet` has, by lease, the
    time in which its work showed no progress, and `ready_waits` the time in which its probes found it not ready.
    """

    suspicions: Mapping[str, Suspicion] = field(default_factory=dict)
    absences: Mapping[str, Absence] = field(default_factory=dict)
    doubts: Mapping[str, Absence] = field(default_factory=dict)
    orphan_sightings: Mapping[str, int] = field(default_factory=dict)
    label_looks: Mapping[str, int] = field(default_factory=dict)
    last_listed: Mapping[str, datetime] = field(default_factory=dict)
    last_seen: Mapping[str, datetime] = field(default_factory=dict)
    quiet: Mapping[str, Quiet] = field(default_factory=dict)
    ready_waits: Mapping[str, ReadyWait] = field(default_factory=dict)
    term_doubts: Mapping[str, Mapping[str, TermDoubt]] = field(default_factory=dict)

    def after(self, listing: ListingMarks, others: Collection[str]) -> "Memory":
        """Return the memory after a listing. `others` are the leases on other markets, whose marks stay."""
        kept = {*others, *listing.leases}
        return replace(
            self,
            suspicions={**_of(self.suspicions, others), **listing.suspicions},
            absences={**_of(self.absences, others), **listing.absences},
            doubts=listing.doubts,
            orphan_sightings=listing.orphan_sightings,
            term_doubts={**_of(self.term_doubts, others), **listing.term_doubts},
            last_listed={**self.last_listed, listing.market: listing.at},
            last_seen={**_of(self.last_seen, kept), **dict.fromkeys(listing.present, listing.at)},
        )

    def unanswered(self, leases: Collection[str]) -> "Memory":
        """Return the memory after the market of these leases did not answer: their suspicions need one more look."""
        mine = {key: replace(each, is_unanswered=True) for key, each in _of(self.suspicions, leases).items()}
        return replace(self, suspicions={**self.suspicions, **mine}) if mine else self

    def to_look_at(self, suspicions: Mapping[str, Suspicion]) -> frozenset[str]:
        """Return the leases of suspicions that are new, or that a look has not answered."""
        return frozenset(key for key, each in suspicions.items() if key not in self.suspicions or each.is_unanswered)


def _of(marks: Mapping[str, T], leases: Collection[str]) -> dict[str, T]:
    return {key: mark for key, mark in marks.items() if key in leases}
