"""Tasks that the guard of a kept host never began: nobody uses what is paid for.

Invariants:
1. One beat proves that the guard took the task; what happens later is judged as on any other lease.
2. Only a bucket that was read proves that there is none. A bucket that is away proves nothing, as for any other guard.
"""

from datetime import timedelta

from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason

CODE = "task_not_taken"
TAKES_WITHIN = timedelta(minutes=5)
"""A guard looks every ten seconds, and first removes the files of the task before."""


def release_reason(fleet: Fleet, lease: Lease) -> Reason | None:
    """Return why a lease is released because its guard never began the slot's task, or None."""
    if not lease.is_reassigned or lease.state is not LeaseState.RUNNING or lease.lease_id in fleet.guard_figures:
        return None
    report = fleet.guard_reports.get(lease.intent_id)
    if report is None or report.beat is not None or report.end is not None or report.unread_end:
        return None
    if report.read_at < max(lease.began, lease.opened_at) + TAKES_WITHIN:
        return None
    return Reason(CODE, f"its guard did not go on with {lease.slot} on the host of the task before")
