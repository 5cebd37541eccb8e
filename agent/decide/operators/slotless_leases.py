"""Leases whose slot the operator's files lack: each is held and counted until a person adopts or releases it.

A reload refuses files without the slot of a lease or of an unsettled rent. Such a lease comes from a rent that the
reload did not see: it was sent a moment later, or was in doubt when the program started with other files.
"""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload


def held(lease: Lease, workloads: Iterable[Workload]) -> Lease:
    """Return a lease under its present name, held if no workload has its slot.

    A failed lease stays as it is, because it is released without a person.
    """
    is_judged = lease.is_held or lease.has_failed or lease.state is LeaseState.RELEASING
    name, index = lease.slot.workload, lease.slot.index
    if not lease.is_open or is_judged or any(work.name == name and index < work.slots for work in workloads):
        return lease
    return msgspec.structs.replace(lease, is_held=True)


def event(lease: Lease, now: datetime) -> Event:
    """Return the event that a lease is held because its slot is in no file."""
    sentence = (
        f"{lease.lease_id} is of {lease.slot}, which no file has: held and counted; `gpubid release {lease.lease_id}` "
        f"ends it, `gpubid adopt {lease.lease_id} --into WORKLOAD/SLOT` keeps it"
    )
    return Event(
        at=now,
        seen_at=now,
        kind=EventKind.ORPHAN_SEEN,
        workload=lease.slot.workload,
        slot=lease.slot.index,
        lease_id=lease.lease_id,
        intent_id=lease.intent_id,
        market=lease.market,
        host_id=lease.host_id,
        rate=lease.billing_rate,
        reason_code="hold",
        reason=sentence,
    )
