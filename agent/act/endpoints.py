"""Where services are reached: told as an event whenever it changes, since a service that moves changes its address."""

from collections.abc import Iterable, Mapping

from agent.domain import usefulness
from agent.domain.event import Event
from agent.domain.fleet import Fleet
from agent.domain.workload import Slot
from agent.ledger.transaction import Transaction

CHANGED = "endpoints.changed"


def of(fleet: Fleet) -> Mapping[Slot, str]:
    """Return where each useful lease with open ports is reached: "8000/tcp=1.2.3.4:41234", space between two."""
    return {
        lease.slot: lease.ports
        for lease in fleet.leases
        if lease.ports and not lease.is_held and usefulness.is_useful(lease, fleet.workload(lease.slot.workload))
    }


def changes(before: Mapping[Slot, str], after: Mapping[Slot, str]) -> Iterable[Slot]:
    """Return the slots that are reached elsewhere, no longer, or newly."""
    return [slot for slot in sorted({*before, *after}, key=str) if before.get(slot) != after.get(slot)]


def note(tx: Transaction, fleet: Fleet, slots: Iterable[Slot], after: Mapping[Slot, str]) -> None:
    """Write down where slots are reached from now on; an empty reason says that they are not."""
    for slot in slots:
        tx.append_event(
            Event(at=fleet.now, kind=CHANGED, workload=slot.workload, slot=slot.index, reason=after.get(slot, ""))
        )
