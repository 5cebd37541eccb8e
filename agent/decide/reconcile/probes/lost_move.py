"""Whether the new lease of a move failed, or was lost before it took over."""

from datetime import timedelta

from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.only_copy import may_leave_at_a_price
from agent.domain.work.workload import Workload

LOST_PATIENCE = timedelta(minutes=10)
"""How long a slot waits for a move's new lease that was lost after it ran, while the old one does not run. Assumed."""
UNCLEAR_PATIENCE = timedelta(minutes=30)
"""How long it waits for a new lease that is listed in a state that cannot be read, since that may run. Assumed."""


def is_tied_to(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether the new lease of a move ran, was lost, and has a disk that may not go.

    A strategy decides on it again once it is the only lease of its slot.
    """
    is_over = lease.state is LeaseState.PAUSED and not lease.paused_by_us and fleet.is_seen(lease)
    is_late = fleet.now - lease.state_since > LOST_PATIENCE
    return is_over and is_late and not may_leave_at_a_price(lease, work)


def is_lost(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether the new lease of a move failed. One that ran, or waits for an auction, may start soon."""
    if lease.state is not LeaseState.PAUSED or fleet.is_listed_running(lease):
        return False
    is_unclear = fleet.is_listed_unclear(lease)
    patience = UNCLEAR_PATIENCE if is_unclear else LOST_PATIENCE
    is_patient = lease.paused_by_us or fleet.now - lease.state_since <= patience
    if not lease.has_run:
        return not ((lease.is_open_bid or is_unclear) and is_patient)
    return not is_patient and may_leave_at_a_price(lease, work)
