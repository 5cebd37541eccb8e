"""Whether an array has proved itself: until then a failure may be the fault of its command, then only of one task."""

from datetime import timedelta

from agent.domain.fleet import Fleet
from agent.domain.record.hold import Holds, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload

PROVEN_AFTER = timedelta(minutes=10)
"""An array has proved itself once one of its slots has run for this long, or is done."""


def has_proved_itself(fleet: Fleet, work: Workload, holds: Holds) -> bool:
    """Return whether a slot of an array is done, or has run for long enough."""
    if any(word is Word.DONE and target.workload == work.name for word, target in holds):
        return True
    return any(_has_run_long(lease, fleet) for lease in fleet.leases if lease.slot.workload == work.name)


def _has_run_long(lease: Lease, fleet: Fleet) -> bool:
    is_running = lease.state is LeaseState.RUNNING and lease.run_since is not None
    return is_running and lease.run_since is not None and fleet.now - lease.run_since >= PROVEN_AFTER
