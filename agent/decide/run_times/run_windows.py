"""Workloads outside of their windows, or before their first start: nothing begins, and what runs is paused or released.

Invariants:
1. The verdict follows in each cycle from the window that the edge computed for this instant (rule 19).
2. While the clock is doubted nothing begins and nothing ends by a window (rule 14).
3. A disk that may hold the only copy of work is paused, not released (rule 11).
"""

import math
from collections.abc import Iterator
from datetime import timedelta

from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Pause, Reason, Release
from agent.domain.work.only_copy import may_leave
from agent.domain.work.run_times.run_window import Outside, WindowNow
from agent.domain.work.workload import Workload

CODE = "window"
NOT_BEFORE = "not_before"
DOUBTED = "clock_doubted"
LEAST = timedelta(minutes=15)
"""How long a window must still be open for a new rent: before that the image is hardly there. Assumed."""
LEAST_SHARE = 0.25
"""The same for short windows, as a share of the shortest one."""


def why_idle(fleet: Fleet, place: Slot) -> Reason | None:
    """Return why nothing is rented or started for a slot, or None."""
    work = fleet.workload(place.workload)
    if work is None or (not work.windows and work.not_before is None):
        return None
    leases = fleet.occupants_of(place)
    if fleet.is_clock_doubted:
        return None if any(map(_goes_on, leases)) else Reason(DOUBTED, "its time is not known: the clock is doubted")
    if work.not_before is not None and fleet.now < work.not_before and not leases:
        return Reason(NOT_BEFORE, f"it begins at {work.not_before:%Y-%m-%d %H:%M} UTC (not_before)")
    shut = closed(fleet, work)
    return None if shut is None else Reason(CODE, waits(shut))


def why_too_late(fleet: Fleet, place: Slot) -> Reason | None:
    """Return why nothing is rented any more for an empty slot in this window, or None."""
    work = fleet.workload(place.workload)
    window = fleet.windows.get(work.name) if work is not None and work.windows else None
    if work is None or window is None or not window.is_open or window.until is None or fleet.is_clock_doubted:
        return None
    least = min(LEAST, LEAST_SHARE * min(rule.lasts for rule in work.windows))
    if window.until - fleet.now >= least:
        return None
    return Reason(CODE, f"its window closes at {window.spoken}, too soon for a start")


def endings(fleet: Fleet) -> Iterator[Pause | Release]:
    """Yield the pauses and releases of leases whose workload is outside of its windows."""
    if fleet.is_clock_doubted:
        return
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        shut = closed(fleet, work) if work is not None else None
        if work is None or shut is None or not _may_end(fleet, lease):
            continue
        if work.outside is Outside.RELEASE and may_leave(lease, work):
            yield Release(lease, Reason(CODE, f"its window is over; {waits(shut)}"))
        elif not fleet.is_stopped(lease):
            yield Pause(lease, Reason(CODE, f"its window is over; {waits(shut)}"))


def closed(fleet: Fleet, work: Workload) -> WindowNow | None:
    """Return the wait of a workload that is outside of its windows, or None."""
    window = fleet.windows.get(work.name) if work.windows else None
    return window if window is not None and not window.is_open else None


def hours_left(fleet: Fleet, place: Slot) -> float:
    """Return the hours until the window of a slot closes and its lease is released; inf if that never comes."""
    work = fleet.workload(place.workload)
    if work is None or not work.windows or work.outside is not Outside.RELEASE or fleet.is_clock_doubted:
        return math.inf
    window = fleet.windows.get(work.name)
    if window is None or not window.is_open or window.until is None:
        return math.inf
    return max((window.until - fleet.now) / timedelta(hours=1), 0.0)


def waits(window: WindowNow) -> str:
    """Return for how long a workload outside of its windows waits."""
    return f"waits for its window until {window.spoken}" if window.spoken else "waits for a window that never comes"


def _goes_on(lease: Lease) -> bool:
    """Return whether a lease runs, or starts, as far as known."""
    return lease.is_live or lease.is_in_run or lease.state is LeaseState.EXITED


def _may_end(fleet: Fleet, lease: Lease) -> bool:
    waiting = {LeaseState.RELEASING, LeaseState.MISSING, LeaseState.EXITED}
    return lease.is_open and not lease.is_held and lease.state not in waiting and fleet.is_seen(lease)
