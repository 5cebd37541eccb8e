"""New progress reports of workloads with a deadline, since progress was last recorded.

Invariants:
1. Only reports are recorded. Nothing is extrapolated.
2. A report of less than before is believed, since work may have been lost. It always gives an event.
3. A guard's report never proves that all is done, or how fast a GPU is. `progress_bounds.py` bounds it.
"""

import math
from collections.abc import Iterator
from datetime import timedelta

from agent.decide.deadline import progress_bounds
from agent.decide.facts import ProgressReported
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Progress, ProgressSign, Speed, is_hours
from agent.domain.work.workload import Workload

SAME = 1e-9
"""Relative tolerance: a guard's numbers are converted to hours and back."""
LEAST_SPAN = timedelta(minutes=1)
"""Two reports closer than this measure no speed: clocks and polls are coarser."""


def known(fleet: Fleet, work: Workload) -> Progress | None:
    """Return the last recorded progress of a workload, also under its old name."""
    return fleet.progress.get(work.name) or (fleet.progress.get(work.was) if work.was else None)


def new_progress(fleet: Fleet) -> Iterator[ProgressReported]:
    """Yield new progress: the first sight of a deadline, and every report that differs from the last."""
    for work in fleet.workloads:
        if work.deadline is None:
            continue
        before = known(fleet, work)
        if before is None or before.workload != work.name:
            hours, since = (before.hours, before.since) if before else (0.0, fleet.now)
            yield ProgressReported(Progress(work.name, hours, fleet.now, since, "start"), before)
            continue
        yield from _reported(fleet, work, before)


def _reported(fleet: Fleet, work: Workload, before: Progress) -> Iterator[ProgressReported]:
    lease = _reporting_lease(fleet, work)
    if lease is not None and work.deadline is not None and work.deadline.sign is ProgressSign.GUARD:
        yield from _measured_by_guard(fleet, work, lease, before)
        return
    view = fleet.markets.get(lease.market) if lease is not None else None
    sighting = view.sightings.get(lease.instance_id) if view is not None and lease is not None else None
    if lease is None or sighting is None or sighting.hours is None or not is_hours(sighting.hours):
        return
    if sighting.at <= before.told_at or sighting.hours == before.hours:
        return
    source = work.deadline.sign.value if work.deadline is not None else ""
    after = Progress(work.name, sighting.hours, sighting.at, before.since, source, lease.lease_id)
    yield ProgressReported(after, before, _measured(lease, before, after))


def _measured_by_guard(fleet: Fleet, work: Workload, lease: Lease, before: Progress) -> Iterator[ProgressReported]:
    """Yield the progress that a lease's guard read in this stretch of running, within bounds.

    It gives no measured speed: a host that falsely reports no progress must not be judged by that.
    """
    figures, wanted = fleet.guard_figures.get(lease.lease_id), work.deadline
    if wanted is None or figures is None or figures.progress is None or figures.stretch != lease.runs:
        return
    hours = progress_bounds.bounded(fleet, work, lease, before, figures, wanted)
    if figures.told_at > before.told_at and not math.isclose(hours, before.hours, rel_tol=SAME, abs_tol=SAME):
        source, number = wanted.sign.value, wanted.number_of(hours)
        after = Progress(before.workload, hours, figures.told_at, before.since, source, lease.lease_id, number)
        yield ProgressReported(after, before)


def _reporting_lease(fleet: Fleet, work: Workload) -> Lease | None:
    """Return the lease whose report counts.

    During a move that is the older one, which works until the newer is ready.
    """
    running = (lease for place in work.places for lease in fleet.leases_of(place) if lease.state is LeaseState.RUNNING)
    return next(running, None)


def _measured(lease: Lease, before: Progress, after: Progress) -> Speed | None:
    """Return the speed that two reports measure, or None unless one lease made both and ran all the time between."""
    span = after.told_at - before.told_at
    ran = lease.run_since is not None and lease.run_since <= before.told_at
    if before.lease_id != lease.lease_id or not ran or after.hours < before.hours or span < LEAST_SPAN:
        return None
    return Speed(after.workload, lease.gpu, after.hours - before.hours, span / timedelta(hours=1))
