"""A checkpoint before an announced end: the guard of a running lease is asked for one, and nothing waits for it.

The host has announced maintenance, or the market has said when it ends the lease.

Invariants:
1. Each announcement is asked for once. The id of the order has the instant from which it was due, so that neither a
   restart nor a second cycle asks again, and the guard's own answer ends it.
2. No lease ends or moves for it. After `PATIENCE` without an answer the guard works on as usual.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agent.decide.moves import last_checkpoint
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState

PATIENCE = timedelta(minutes=10)
"""How long before an announced beginning a checkpoint is asked for, and how long after a notice without a date."""


def orders(fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield the orders that are due: the intent that rented each lease, and the id of its order."""
    for lease in fleet.leases:
        since = _noticed_since(fleet, lease) or _due_since(lease, fleet.now)
        if since is None or not _is_guarded(fleet, lease) or not last_checkpoint.can_answer(fleet, lease):
            continue
        if not last_checkpoint.has_answered(fleet, lease, since):
            yield lease.intent_id, last_checkpoint.order_of(lease, since)


def _is_guarded(fleet: Fleet, lease: Lease) -> bool:
    work = fleet.workload(lease.slot.workload)
    has_bucket = work is not None and work.guard is not None and work.guard.bucket is not None
    return has_bucket and lease.guard_run is not None and lease.state is LeaseState.RUNNING and not lease.has_failed


def _noticed_since(fleet: Fleet, lease: Lease) -> datetime | None:
    """Return since when a checkpoint is due before the market ends a lease, or None."""
    if lease.notice_at is None or fleet.now >= lease.notice_at:
        return None
    return max(lease.notice_at - fleet.rules_of(lease.market).notice, lease.began)


def _due_since(lease: Lease, now: datetime) -> datetime | None:
    """Return since when a checkpoint is due before the maintenance of a lease's host, or None."""
    told_at, begins_at = lease.maintenance_told_at, lease.maintenance_begins_at
    if told_at is None:
        return None
    since = told_at if begins_at is None else max(told_at, begins_at - PATIENCE)
    until = since + PATIENCE if begins_at is None else begins_at
    return since if since <= now < until and since >= lease.began else None
