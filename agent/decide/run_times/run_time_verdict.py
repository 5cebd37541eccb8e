"""Whether a workload may run now, by its windows and by the time that it has run.

Invariant: a lease whose disk a person keeps, by a pause, a held slot or a kill, is not released by either.
"""

from collections.abc import Iterator
from itertools import chain

from agent.decide.run_times import run_windows, running_limits
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Pause, Reason, Release


def why_idle(fleet: Fleet, place: Slot) -> Reason | None:
    """Return why nothing is rented or started for a slot, or None. The end of a container is judged all the same."""
    over = running_limits.why_idle(fleet, place) or run_windows.why_idle(fleet, place)
    if over is None or any(lease.state is LeaseState.EXITED for lease in fleet.leases_of(place)):
        return None
    return over


def endings(fleet: Fleet) -> Iterator[Pause | Release]:
    """Yield the pauses and releases of leases that may not run now."""
    holds = hold.in_force(fleet.holds, fleet.now)
    for order in chain(running_limits.endings(fleet), run_windows.endings(fleet)):
        # What keeps the disk also pauses the lease.
        if isinstance(order, Pause) or not hold.keeps_disk(order.lease, holds):
            yield order
