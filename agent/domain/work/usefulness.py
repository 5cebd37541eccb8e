"""Whether a paid lease is of any use now."""

from datetime import datetime, timedelta

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload

IDLE_AFTER = timedelta(minutes=15)
"""After this long GPUs count as idle; loading data between two epochs takes only minutes. Assumed."""


def is_useful(lease: Lease, work: Workload | None) -> bool:
    """Return whether a lease runs and, if its workload reports readiness, is ready."""
    is_asked = work is not None and work.ready.is_asked
    return lease.state is LeaseState.RUNNING and (not is_asked or lease.ready_since is not None)


def is_idle(lease: Lease, now: datetime) -> bool:
    """Return whether a running lease has been idle long enough to warn a person."""
    is_long = lease.idle_since is not None and now - lease.idle_since >= IDLE_AFTER
    return lease.state is LeaseState.RUNNING and is_long
