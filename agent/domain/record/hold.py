"""A hold: what an operator forbids or stops, and what waits for an operator, until a time or until it is lifted.

Invariant: a hold without a time is over only when somebody lifts it; no clock ends it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.record.expiry import Expiring
from agent.domain.slot import Slot


class Word(StrEnum):
    """What a hold does."""

    LOCK = "lock"
    """Nothing is rented, started or bid higher; what runs goes on."""
    DRAIN = "drain"
    """Nothing is rented; what runs goes on."""
    PAUSE = "pause"
    """What runs is stopped, keeps its disk, and stays stopped."""
    DONE = "done"
    """What runs is released, and its slot is not filled again."""
    KILL = "kill"
    """What is there is released, and nothing is rented there."""
    HELD = "held"
    """The agent's own word: a slot or a workload waits for an operator; what runs is paused."""


OFF_THE_MARKET = (Word.KILL, Word.LOCK, Word.DRAIN, Word.PAUSE)
"""Words under which no offer of a host, an owner or a market is rented."""


class TargetKind(StrEnum):
    """What sort of thing a hold is about."""

    WORKLOAD = "workload"
    SLOT = "slot"
    LEASE = "lease"
    HOST = "host"
    OWNER = "owner"
    MARKET = "market"
    FLEET = "fleet"


_KINDS = frozenset(TargetKind)
_SPOKEN_BARE = frozenset({TargetKind.WORKLOAD, TargetKind.SLOT, TargetKind.LEASE})


class Target(msgspec.Struct, frozen=True, order=True):
    """What a hold is about; written as KIND:NAME."""

    kind: TargetKind
    name: str
    """NAME, NAME/SLOT, a lease's id, MARKET/ID of a host or an owner, or a market's name."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Target | None":
        """Return what KIND:NAME names, or None where that is no kind."""
        kind, _, name = text.partition(":")
        return cls(TargetKind(kind), name) if kind in _KINDS else None

    @property
    def workload(self) -> str:
        """The workload that it is, or is a slot of; empty for any other."""
        return self.name.partition("/")[0] if self.kind in {TargetKind.WORKLOAD, TargetKind.SLOT} else ""

    @property
    def index(self) -> int | None:
        """The number of its slot; None where it is no slot."""
        index = self.name.rpartition("/")[2]
        return int(index) if self.kind is TargetKind.SLOT and index.isdecimal() else None

    @property
    def spoken(self) -> str:
        """The name by which an order means it."""
        return self.name if self.kind in _SPOKEN_BARE else str(self)

    def renamed(self, name: str) -> "Target":
        """Return the same workload, or the same slot, under another name of the workload."""
        return Target(self.kind, name + self.name[len(self.workload) :])


EVERYTHING = Target(TargetKind.FLEET, "all")
"""Killed, nothing is rented, raised or started, and all that bills is ended."""
DISKS = Target(TargetKind.FLEET, "disks")
"""Stands beside `EVERYTHING` where the disks are to be kept: then what bills is paused, not released."""


def of_workload(name: str) -> Target:
    """Return a workload as a target."""
    return Target(TargetKind.WORKLOAD, name)


def of_slot(place: Slot) -> Target:
    """Return a slot as a target."""
    return Target(TargetKind.SLOT, str(place))


def of_lease(lease_id: str) -> Target:
    """Return a lease as a target."""
    return Target(TargetKind.LEASE, lease_id)


def of_place(host: HostKey, owner: OwnerKey) -> tuple[Target, Target, Target]:
    """Return a host, its owner and its market as targets."""
    return Target(TargetKind.HOST, str(host)), Target(TargetKind.OWNER, str(owner)), of_market(host.market)


def of_market(name: str) -> Target:
    """Return a market as a target."""
    return Target(TargetKind.MARKET, name)


def place_of(word: Word, target: Target) -> tuple[str, str]:
    """Return scope and key of a hold, as the ledger keeps it."""
    if target.kind is TargetKind.FLEET:
        return target.kind.value, target.name
    return word.value, str(target)


@dataclass(frozen=True, slots=True)
class OperatorHold(Expiring):
    """A word about a target, in force from `since` on."""

    word: Word
    target: Target
    since: datetime
    ground: str
    """Who gave it; why, where the agent holds by itself."""
    until: datetime | None = None
    """When it is over by itself; None: when it is lifted."""

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key: two holds of one place are the same hold, given twice."""
        return place_of(self.word, self.target)


Holds = Mapping[tuple[Word, Target], OperatorHold]
"""Holds by what they do and what they are about."""


def in_force(holds: Iterable[OperatorHold], now: datetime) -> Holds:
    """Return the holds that are not over."""
    return {(hold.word, hold.target): hold for hold in holds if not hold.is_over(now)}
