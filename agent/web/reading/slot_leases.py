"""The leases of each slot, and the lease that represents it. Every reader counts running slots by these rules.

1. A held lease fills no slot. A lease whose slot is not configured fills no slot either. Both still bill.
2. A slot may have several leases: in a move, or while an old one is being released. The running one represents the
   slot, else the newest one that is not being released, else the newest.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class SlotLeases:
    """The open leases of each slot that has one, and the leases without a slot."""

    by_slot: Mapping[Slot, Sequence[Lease]]
    loose: Sequence[Lease]

    @property
    def running(self) -> int:
        """The number of running slots."""
        return sum(is_running(mine) for mine in self.by_slot.values())


def filled(places: Collection[Slot], leases: Iterable[Lease]) -> SlotLeases:
    """Return the open leases by the slot that they fill, and the leases without a slot."""
    by_slot: dict[Slot, list[Lease]] = defaultdict(list)
    loose: list[Lease] = []
    configured = frozenset(places)
    for lease in leases:
        if lease.is_open:
            (loose if lease.is_held or lease.slot not in configured else by_slot[lease.slot]).append(lease)
    return SlotLeases(by_slot, loose)


def lead(mine: Sequence[Lease]) -> Lease | None:
    """Return the lease that represents a slot with these leases."""
    return max(mine, key=_rank, default=None)


def _rank(lease: Lease) -> tuple[bool, bool, datetime, str]:
    is_staying = lease.state is not LeaseState.RELEASING
    return lease.state is LeaseState.RUNNING, is_staying, lease.opened_at, lease.lease_id


def is_running(mine: Sequence[Lease]) -> bool:
    """Return whether a slot with these leases runs."""
    return any(lease.state is LeaseState.RUNNING for lease in mine)
