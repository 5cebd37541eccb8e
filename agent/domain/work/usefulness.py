"""Whether a paid lease is of any use now."""

from datetime import datetime

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.idle_rule import IdleRule
from agent.domain.work.workload import Workload


def is_useful(lease: Lease, work: Workload | None) -> bool:
    """Return whether a lease runs and, if its workload reports readiness, is ready."""
    is_asked = work is not None and work.ready.is_asked
    return lease.state is LeaseState.RUNNING and (not is_asked or lease.ready_since is not None)


def is_idle(lease: Lease, work: Workload | None, now: datetime) -> bool:
    """Return whether the GPUs of a running lease have been idle for as long as its workload allows."""
    lasts = (work.idle if work is not None else IdleRule()).lasts
    is_long = lease.idle_since is not None and now - lease.idle_since >= lasts
    return lease.state is LeaseState.RUNNING and is_long
