"""Whether a workload may run now, by its windows and by the time that it has run."""

from collections.abc import Iterator

from agent.decide.run_times import run_windows, running_limits
from agent.domain.fleet import Fleet
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
    yield from running_limits.endings(fleet)
    yield from run_windows.endings(fleet)
