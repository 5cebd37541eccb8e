"""Whether a lease that is paid for is any use now."""

from datetime import datetime, timedelta

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload

IDLE_AFTER = timedelta(minutes=15)
"""Loading data between two epochs takes minutes; a quarter of an hour is idling. Assumed."""


def is_useful(held: Lease, work: Workload | None) -> bool:
    """Return whether a lease runs and, where its workload tells, is ready."""
    is_asked = work is not None and work.ready.is_asked
    return held.state is LeaseState.RUNNING and (not is_asked or held.ready_since is not None)


def is_idle(held: Lease, now: datetime) -> bool:
    """Return whether a running lease has idled so long that a person should hear of it."""
    is_long = held.idle_since is not None and now - held.idle_since >= IDLE_AFTER
    return held.state is LeaseState.RUNNING and is_long
