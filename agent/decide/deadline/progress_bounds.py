"""Bounds on the progress that one host reports: a false report alone must not rent on-demand too early or too late.

Invariants:
1. Within one stretch of running, hours done never fall: a program may write 0 before it has loaded its state.
2. After a stretch they fall by at most the work since its last checkpoint, plus a margin for an older checkpoint.
3. They rise by at most `MOST_TIMES` the work that the workload's fastest known GPU does in that time.
4. A person's report, and a report of unknown time, bound nothing.
"""

from datetime import datetime, timedelta

from agent.decide.deadline import reference_speed
from agent.domain.fleet import Fleet
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Deadline, Progress
from agent.domain.work.workload import Workload

MOST_TIMES = 4.0
"""The operator's hours are an estimate: work up to this many times faster is believed."""
MARGIN_INTERVALS = 2
"""A restore that crashes goes back to the checkpoint before."""
_HOUR = timedelta(hours=1)


def bounded(
    fleet: Fleet, work: Workload, lease: Lease, before: Progress, figures: GuardFigures, wanted: Deadline
) -> float:
    """Return the hours of work of a guard's number, within the bounds since the last report."""
    hours = wanted.hours_of(figures.progress or 0.0)
    most_speed = MOST_TIMES * fastest(fleet, work, lease)
    base = _base(before, lease, wanted)
    if base is None:
        return hours
    ceiling = base + most_speed * max(figures.told_at - before.told_at, timedelta()) / _HOUR
    lost = _lost(fleet, work, lease, before, figures)
    floor = 0.0 if lost is None else base - most_speed * (lost / _HOUR)
    return max(min(hours, ceiling), floor, 0.0)


def fastest(fleet: Fleet, work: Workload, lease: Lease) -> float:
    """Return the most hours of work done in one hour on any known GPU of a workload."""
    wants = work.requirements
    reference = reference_speed.dlperf(fleet, work)
    rows = [lease.dlperf, *(fleet.typical.get((model, wants.gpus), 0.0) for model in wants.gpu_models)]
    mine = [each for each in fleet.speeds if each.workload in {work.name, work.was} and each.running_hours > 0]
    measured = [each.hours / each.running_hours for each in mine]
    return max([1.0, *(row / reference for row in rows if reference), *measured])


def _base(before: Progress, lease: Lease, wanted: Deadline) -> float | None:
    """Return the hours of the last report by the present file, or None if it bounds nothing."""
    if before.number is not None:
        return wanted.hours_of(before.number)
    # Work that ran before its deadline was written may have done anything.
    return 0.0 if before.source == "start" and before.hours == 0.0 and lease.opened_at >= before.since else None


def _lost(fleet: Fleet, work: Workload, lease: Lease, before: Progress, figures: GuardFigures) -> timedelta | None:
    """Return the running time before the last report whose work may be lost since, or None if it is unknown."""
    if before.lease_id == lease.lease_id and lease.run_since is not None and lease.run_since <= before.told_at:
        return timedelta()
    kept = _kept_at(fleet, lease, before, figures)
    margin = MARGIN_INTERVALS * work.checkpoint.interval
    return None if kept is None else max(before.told_at - kept, timedelta()) + margin


def _kept_at(fleet: Fleet, lease: Lease, before: Progress, figures: GuardFigures) -> datetime | None:
    """Return when the work of the last report was surely kept: at a checkpoint, or at the start of that stretch."""
    if before.lease_id != lease.lease_id:
        earlier = fleet.guard_figures.get(before.lease_id)
        # A new run begins with nothing.
        return earlier.kept_at if earlier is not None and earlier.run == figures.run else None
    losses = (loss.at for loss in fleet.losses if loss.slot == lease.slot and loss.at < before.told_at)
    return max([lease.opened_at, *losses])
