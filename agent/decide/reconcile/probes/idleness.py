"""Idle GPUs: since when the market or their guard shows them so, the alert of that, and the slots held for it.

Invariants:
1. Each of the two is believed if it shows them idle: a host cannot go on billing by a false use in its guard's beats.
2. A slot is held for the lease that it works on, and not for one that it has moved away from.
3. A guard that is silent, or whose work has not begun, shows nothing. Time in the dark or without a figure is no
   idleness.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from agent.decide.facts import Alert
from agent.decide.reconcile.guards import beat_stretch
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy, usefulness
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.workload import Workload

DARK = timedelta(minutes=10)
"""After this long without a listing, longer than a lease that runs goes unmetered, its idleness is counted anew."""
GROUND = "its GPUs are used below"
"""The first words of the ground of a hold for idle GPUs."""
ONE_BEAT = timedelta(minutes=3)
"""A beat that has not changed for this long is of a silent guard: it beats once a minute, and is read once a minute."""


def is_idle(row: Instance, work: Workload | None) -> bool:
    """Return whether a row shows GPUs that do nothing."""
    below = (work.idle if work is not None else IdleRule()).below
    return row.gpu_util is not None and row.gpu_util < below


def _use(fleet: Fleet, lease: Lease, row: Instance) -> float | None:
    """Return the lowest use that the market or the guard of a lease shows now; None if neither does."""
    shown = (row.gpu_util, _guarded_use(fleet, lease))
    return min((use for use in shown if use is not None), default=None)


def _guarded_use(fleet: Fleet, lease: Lease) -> float | None:
    report = fleet.guard_reports.get(lease.intent_id)
    if report is None or report.beat is None or report.beat_changed_at is None:
        return None
    is_speaking = fleet.now - max(report.beat_changed_at, lease.began) <= ONE_BEAT + fleet.poll
    is_working = report.beat.phase in {"running", "uploading"} and beat_stretch.has_changed(report, lease)
    return report.beat.gpu_use if is_speaking and is_working and lease.guard_run is not None else None


def judged(
    fleet: Fleet, work: Workload | None, lease: Lease, row: Instance, metered_until: datetime
) -> tuple[Lease, EventKind | None]:
    """Return a running lease with the time since when its GPUs idle. What an unread listing had shown is unknown."""
    use, below = _use(fleet, lease, row), (work.idle if work is not None else IdleRule()).below
    if use is None:
        # Whoever showed them idle before is silent: nobody knows whether they still are.
        return replace(lease, idle_since=None), None
    if use >= below:
        was_told = usefulness.is_idle(lease, work, fleet.now)
        return replace(lease, idle_since=None), EventKind.LEASE_BUSY if was_told else None
    is_dark = fleet.now - metered_until > DARK + fleet.poll
    return (replace(lease, idle_since=fleet.now) if lease.idle_since is None or is_dark else lease), None


def held(fleet: Fleet, changed: Mapping[str, Lease]) -> Iterator[tuple[Lease, str]]:
    """Yield each lease whose slot is held for a person because its GPUs idle, with the reason.

    `changed` are the leases that this listing changed: it may show them busy, or after a dark stretch.
    """
    for known in fleet.leases:
        lease = changed.get(known.lease_id, known)
        work = fleet.workload(lease.slot.workload)
        if work is None or work.idle.then is OnIdle.WARN or lease.is_held or not fleet.is_seen(lease):
            continue
        if usefulness.is_idle(lease, work, fleet.now) and lease.idle_since is not None:
            since = f"since {lease.idle_since:%H:%M} UTC"
            if not _goes_on_elsewhere(fleet, lease, changed):
                yield lease, f"{GROUND} {work.idle.below:g} % {since} at {lease.billing_rate}"


def _goes_on_elsewhere(fleet: Fleet, lease: Lease, changed: Mapping[str, Lease]) -> bool:
    """Return whether a slot has moved: another lease of it runs, and nothing shows its GPUs idle.

    One whose disk may hold the only copy of work is not released after a move, and would bill for nobody.
    """
    work = fleet.workload(lease.slot.workload)
    if work is None or not only_copy.may_leave(lease, work):
        return False
    others = (changed.get(each.lease_id, each) for each in fleet.occupants_of(lease.slot))
    mine = (each for each in others if each.lease_id != lease.lease_id and each.state is LeaseState.RUNNING)
    return any(each.idle_since is None for each in mine)


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease whose paid GPUs do nothing."""
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        if usefulness.is_idle(lease, work, fleet.now) and lease.idle_since is not None:
            sentence = f"{lease.slot} on host {lease.host_id} bills {lease.billing_rate} and its GPUs idle since "
            yield Alert(
                EventKind.ALERT_IDLE,
                lease.lease_id,
                f"{sentence}{lease.idle_since:%H:%M} UTC; see `gpubid logs {lease.slot}`",
            )
