"""Addresses of services: each change is an event, because a service that moves changes its address."""

from collections.abc import Iterable, Mapping

from agent.domain.fleet import Fleet
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot
from agent.domain.work import usefulness
from agent.ledger.transaction import Transaction

CHANGED = EventKind.ENDPOINTS_CHANGED


def of(fleet: Fleet) -> Mapping[Slot, str]:
    """Return by slot the addresses of useful leases on their workload's ports, separated by spaces.

    An address has the form "8000/tcp=1.2.3.4:41234".
    """
    found: dict[Slot, str] = {}
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        if work is not None and not lease.is_held and usefulness.is_useful(lease, work):
            found[lease.slot] = " ".join(each for each in lease.ports.split() if _port(each) in work.ports)
    return {slot: places for slot, places in found.items() if places}


def _port(entry: str) -> int:
    """Return the container's port in "8000/tcp=1.2.3.4:41234"; a market also opens others, such as a shell's."""
    digits = entry.partition("/")[0]
    return int(digits) if digits.isascii() and digits.isdecimal() else -1


def changes(before: Mapping[Slot, str], after: Mapping[Slot, str]) -> Iterable[Slot]:
    """Return the slots with a changed, removed or new address."""
    return [slot for slot in sorted({*before, *after}, key=str) if before.get(slot) != after.get(slot)]


def note(tx: Transaction, fleet: Fleet, slots: Iterable[Slot], after: Mapping[Slot, str]) -> None:
    """Record the addresses of slots from now on; an empty reason means that a slot has none."""
    for slot in slots:
        tx.append_event(
            Event(at=fleet.now, kind=CHANGED, workload=slot.workload, slot=slot.index, reason=after.get(slot, ""))
        )
