"""The leases of each slot, and the one that stands for it: every reader counts running slots by these rules.

1. A held lease fills no slot; neither does a lease whose slot is not configured. Both bill all the same.
2. While a slot moves it has two leases. The one that runs stands for it, else the last one.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class Filled:
    """The open leases of each slot that has one, and those that fill none."""

    by_slot: Mapping[Slot, Sequence[Lease]]
    loose: Sequence[Lease]

    @property
    def running(self) -> int:
        """How many slots run."""
        return sum(is_running(mine) for mine in self.by_slot.values())


def filled(places: Collection[Slot], leases: Iterable[Lease]) -> Filled:
    """Return which open leases fill which of these slots."""
    by_slot: dict[Slot, list[Lease]] = defaultdict(list)
    loose: list[Lease] = []
    configured = frozenset(places)
    for lease in leases:
        if lease.is_open:
            (loose if lease.is_held or lease.slot not in configured else by_slot[lease.slot]).append(lease)
    return Filled(by_slot, loose)


def lead(mine: Sequence[Lease]) -> Lease | None:
    """Return the lease that stands for a slot with these leases."""
    runs = (lease for lease in reversed(mine) if lease.state is LeaseState.RUNNING)
    return next(runs, mine[-1] if mine else None)


def is_running(mine: Sequence[Lease]) -> bool:
    """Return whether a slot with these leases runs."""
    return any(lease.state is LeaseState.RUNNING for lease in mine)
