"""Addresses of services: each change is an event, because a service that moves changes its address."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from agent.domain.fleet import Fleet
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot
from agent.domain.work import usefulness
from agent.ledger.store import Ledger

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


def changes(before: Mapping[Slot, str], after: Mapping[Slot, str]) -> Sequence[Slot]:
    """Return the slots with a changed, removed or new address."""
    return [slot for slot in sorted({*before, *after}, key=str) if before.get(slot) != after.get(slot)]


async def keep(ledger: Ledger, fleet: Fleet, before: Mapping[Slot, str]) -> Mapping[Slot, str]:
    """Record each changed address of a fleet, and return all addresses.

    Raises:
        LedgerError: nothing was written.
    """
    after = of(fleet)
    moved = changes(before, after)
    if moved:
        async with ledger.transaction() as tx:
            for slot in moved:
                tx.append_event(_event(fleet.now, slot, after.get(slot, "")))
    return after


def _event(now: datetime, slot: Slot, places: str) -> Event:
    """Return the event of the addresses of a slot; an empty text means that it has none."""
    return Event(at=now, kind=CHANGED, workload=slot.workload, slot=slot.index, reason=places)
