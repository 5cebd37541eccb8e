"""A hold: an operator's order to forbid or stop, or a wait for an operator, until a time or until it is lifted.

Invariant: a hold without an end is in force until somebody lifts it. No clock ends it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from agent.domain.market.host import HostKey, OwnerKey
from agent.domain.record.expiry import Expiring
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot


class Word(StrEnum):
    """The effects of holds."""

    LOCK = "lock"
    """Nothing is rented, started or bid higher. Running leases go on."""
    DRAIN = "drain"
    """Nothing is rented. Running leases go on."""
    PAUSE = "pause"
    """Running leases are stopped, keep their disks, and stay stopped."""
    DONE = "done"
    """The lease is released, and its slot is not filled again."""
    KILL = "kill"
    """Leases of the target are released, and nothing is rented there."""
    HELD = "held"
    """The daemon's own hold: a slot or a workload waits for an operator, and its running leases are paused."""


OFF_THE_MARKET = (Word.KILL, Word.LOCK, Word.DRAIN, Word.PAUSE)
"""The words under which no offer of the host, owner or market is rented."""


class TargetKind(StrEnum):
    """The kinds of targets."""

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
    """The target of a hold, written as KIND:NAME."""

    kind: TargetKind
    name: str
    """NAME, NAME/SLOT, a lease's id, MARKET/ID of a host or an owner, or a market's name."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Target | None":
        """Return the target of KIND:NAME, or None if KIND is unknown."""
        kind, _, name = text.partition(":")
        return cls(TargetKind(kind), name) if kind in _KINDS else None

    @property
    def workload(self) -> str:
        """The workload of a target that is a workload or a slot; empty for any other target."""
        return self.name.partition("/")[0] if self.kind in {TargetKind.WORKLOAD, TargetKind.SLOT} else ""

    @property
    def index(self) -> int | None:
        """The number of the slot; None if the target is not a slot."""
        index = self.name.rpartition("/")[2]
        return int(index) if self.kind is TargetKind.SLOT and index.isdecimal() else None

    @property
    def spoken(self) -> str:
        """The name of the target in an order."""
        return self.name if self.kind in _SPOKEN_BARE else str(self)

    def is_within(self, outer: "Target") -> bool:
        """Return whether this is another target, or a slot of that workload."""
        is_slot_of = outer.kind is TargetKind.WORKLOAD and self.kind is TargetKind.SLOT
        return self == outer or (is_slot_of and self.workload == outer.workload)

    def renamed(self, name: str) -> "Target":
        """Return the same target under another name of its workload."""
        return Target(self.kind, name + self.name[len(self.workload) :])


EVERYTHING = Target(TargetKind.FLEET, "all")
"""Under a kill of this target nothing is rented, raised or started, and everything that bills is ended."""
DISKS = Target(TargetKind.FLEET, "disks")
"""A kill of this target beside `EVERYTHING` keeps the disks: leases that bill are paused, not released."""


def of_workload(name: str) -> Target:
    """Return a workload as a target."""
    return Target(TargetKind.WORKLOAD, name)


def of_slot(place: Slot) -> Target:
    """Return a slot as a target."""
    return Target(TargetKind.SLOT, str(place))


def of_lease(lease_id: str) -> Target:
    """Return a lease as a target."""
    return Target(TargetKind.LEASE, lease_id)


def including(lease: Lease) -> tuple[Target, ...]:
    """Return the targets that include a lease: its workload, slot, host, owner and market, and the lease itself."""
    mine = of_workload(lease.slot.workload), of_slot(lease.slot), of_lease(lease.lease_id)
    return *mine, *of_place(lease.host, lease.owner)


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
    """The person who gave it, or the reason of the daemon's own hold."""
    until: datetime | None = None
    """When it ends by itself; None: only when it is lifted."""

    @property
    def place(self) -> tuple[str, str]:
        """The scope and the key. Two holds of one place are the same hold, given twice."""
        return place_of(self.word, self.target)


Holds = Mapping[tuple[Word, Target], OperatorHold]
"""Holds by word and target."""


def in_force(holds: Iterable[OperatorHold], now: datetime) -> Holds:
    """Return the holds that are not over."""
    return {(hold.word, hold.target): hold for hold in holds if not hold.is_over(now)}


def keeps_disk(lease: Lease, holds: Holds) -> bool:
    """Return whether a hold stops a lease and keeps its disk: a pause, a held slot or workload, or such a kill."""
    is_kill = (Word.KILL, DISKS) in holds
    return is_kill or any((word, target) in holds for word in (Word.PAUSE, Word.HELD) for target in including(lease))
