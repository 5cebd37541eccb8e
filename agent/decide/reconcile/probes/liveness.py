"""Liveness: whether a service that was ready still answers, and what is done about one that does not.

It is useless at once, restarted in place, and given up for another host after `MOST_RESTARTS` restarts in vain.

Invariants:
1. An instance is probed only while a fresh listing shows it running, so a market in the dark makes nothing unhealthy.
2. While no other service of ours answers, our own network may be at fault: nothing is restarted before `ALONE`.
3. A host is blamed only while others of the same workload are well.
4. A disk that may hold the only copy of work is not given up (rule 11): its service is restarted again and again, also
   where it is not ready after a restart.
5. Where a market cannot pause, nothing is restarted in place: the service is given up, and that counts as a failure.
6. A service whose container ends by itself again and again is given up too.
7. A service that was ready, stopped, and is not ready again in time is unhealthy too.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec.structs import replace

from agent.decide.accounting.meter import Charge
from agent.decide.facts import Alert
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.interruption import Cause
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy, usefulness
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Workload, WorkloadKind

UNHEALTHY = "unhealthy"
"""The code of a service that does not answer, when its host is not blamed for it."""
UNHEALTHY_HOST = "unhealthy_host"
"""The same when others of its workload are well, so that its host is blamed."""
RESTART = "restart"
"""The code of both halves of a restart in place."""
MOST_RESTARTS = 2
"""After this many restarts in vain another host is tried. Assumed."""
BACK_OFF = timedelta(minutes=5)
"""The wait before the second restart; each later one waits twice as long as the one before. Assumed."""
MOST_BACK_OFF = timedelta(hours=1)
RESTART_WITHIN = timedelta(minutes=15)
"""A restart that is not done after this long is left to the strategy. Assumed."""
ALONE = timedelta(minutes=5)
"""The wait before the first restart while no other service of ours answers. Assumed."""
FORGIVEN_AFTER = timedelta(hours=6)
"""After this long in health earlier restarts no longer count. Assumed."""


def is_watched(work: Workload | None, lease: Lease) -> bool:
    """Return whether the service of a lease was ready in this stretch of running and is probed on."""
    was_ready = lease.ready_since is not None or lease.unhealthy_since is not None
    return work is not None and work.ready.is_watched and was_ready and lease.state is LeaseState.RUNNING


def is_stop_due(lease: Lease) -> bool:
    """Return whether the first half of a restart is due: the stop of a lease that is unhealthy or stalled."""
    since, decided = lease.unhealthy_since or lease.stalled_since, lease.restart_at
    return lease.state is LeaseState.RUNNING and since is not None and decided is not None and decided >= since


def is_start_due(lease: Lease, now: datetime) -> bool:
    """Return whether the second half is due: the start of a lease that was stopped for its restart a moment ago."""
    is_stopped = lease.state is LeaseState.PAUSED and lease.paused_by_us
    return is_stopped and lease.restart_at is not None and now - lease.restart_at <= RESTART_WITHIN


def restart_after_stop(lease: Lease, code: str, now: datetime) -> datetime | None:
    """Return when the restart of a lease counts as decided once an order with a reason of this `code` has stopped it.

    The stop of a restart may have waited for long, so its start is due from now on. Any other stop calls it off.
    """
    return now if code == RESTART and lease.restart_at is not None else None


def renewed(lease: Lease) -> Lease:
    """Return a lease whose stretch of running is new or over: nothing is known of its service's health."""
    if lease.failed_probes == 0 and lease.unhealthy_since is None:
        return lease
    known = "" if lease.end_reason.startswith(UNHEALTHY) and not lease.has_failed else lease.end_reason
    return replace(lease, failed_probes=0, probe_failed_at=None, unhealthy_since=None, end_reason=known)


def judged(fleet: Fleet, view: MarketView, work: Workload, lease: Lease) -> tuple[Lease, EventKind | None]:
    """Return a watched lease after the last probe of its service, and the event of that."""
    if lease.lease_id in fleet.unprobed or lease.has_failed:
        return lease, None
    sighting, kind = view.sightings.get(lease.instance_id), None
    if sighting is not None and sighting.was_asked and _is_new(lease, sighting):
        if sighting.is_ready:
            return _answered(lease, sighting)
        lease, kind = _unanswered(fleet, work, lease, sighting)
    return _treated(fleet, work, lease, kind)


def is_restarted_on(work: Workload, lease: Lease) -> bool:
    """Return whether a lease that was ready before and is not again in time is restarted, before it is given up.

    After a restart in vain that is so only if its disk must be kept.
    """
    was_watched = work.ready.is_watched and lease.was_ready
    return was_watched and (lease.restarts == 0 or not only_copy.may_leave(lease, work))


def not_ready_again(fleet: Fleet, lease: Lease, said: str) -> tuple[Lease, EventKind]:
    """Return a lease whose service a start or a restart did not make ready again, and the event of that."""
    after = f"after {lease.restarts} restart(s)" if lease.restarts else "again, as it was before it stopped"
    reason = f"{UNHEALTHY}: its service is not ready {after}; {said}"
    return replace(lease, unhealthy_since=fleet.now, end_reason=reason), EventKind.LEASE_UNHEALTHY


def restarts_after(before: Lease, work: Workload | None, stopped_at: datetime) -> int:
    """Return how many restarts still count once a stretch of running is over: none after a long one in health."""
    return 0 if _was_long_well(before, work, stopped_at) else before.restarts


def _was_long_well(before: Lease, work: Workload | None, stopped_at: datetime) -> bool:
    healthy_since = before.ready_since if work is not None and work.ready.is_asked else before.run_since
    return healthy_since is not None and stopped_at - healthy_since >= FORGIVEN_AFTER


def after_exit(fleet: Fleet, before: Lease, after: Lease) -> Lease:
    """Return a lost lease; that of a service whose container ended by itself counts that as a restart in vain.

    After too many in a row another host is tried, as for a service that does not answer. Where nothing restarts in
    place that is so at once, but not after a long stretch in health, which is no failed start.
    """
    work = fleet.workload(before.slot.workload)
    is_end = after.interrupted_by is Cause.CONTAINER_EXIT and not after.has_failed
    if work is None or work.kind is not WorkloadKind.SERVICE or not is_end:
        return after
    if not can_restart_in_place(fleet, before) and only_copy.may_leave(before, work):
        if _was_long_well(before, work, after.state_since):
            return after
        reason = f"{UNHEALTHY}: its container ended by itself, and {before.market} cannot restart it in place"
        return replace(after, has_failed=True, end_reason=reason)
    ends = after.restarts + 1
    counted = replace(after, restarts=ends)
    if ends <= MOST_RESTARTS or not only_copy.may_leave(before, work):
        return counted
    reason = f"{UNHEALTHY}: its container ended by itself, and {ends - 1} starts before that were in vain"
    return replace(counted, has_failed=True, end_reason=reason)


def unwatched(fleet: Fleet, lease: Lease) -> Lease:
    """Return a lease whose unhealthy service is probed no more, by a changed configuration: it counts as useful."""
    return replace(renewed(lease), ready_since=fleet.now)


def _is_new(lease: Lease, sighting: Sighting) -> bool:
    """Return whether a sighting says something that is not counted yet. After a restart a market may say the same."""
    failed_at = lease.probe_failed_at
    if failed_at is not None and not sighting.is_ready and sighting.at - failed_at < sighting.stands:
        return False
    return sighting.at > max(at for at in (lease.run_since, lease.ready_since, failed_at) if at is not None)


def _answered(lease: Lease, sighting: Sighting) -> tuple[Lease, EventKind | None]:
    if lease.unhealthy_since is None:
        return renewed(lease), None
    return replace(renewed(lease), ready_since=sighting.at), EventKind.LEASE_READY


def _unanswered(fleet: Fleet, work: Workload, lease: Lease, sighting: Sighting) -> tuple[Lease, EventKind | None]:
    counted = replace(lease, failed_probes=lease.failed_probes + 1, probe_failed_at=sighting.at)
    if lease.unhealthy_since is not None or counted.failed_probes < work.ready.live.failures:
        return counted, None
    ready = fleet.now - lease.ready_since if lease.ready_since is not None else timedelta()
    ill = replace(
        counted,
        ready_since=None,
        unhealthy_since=fleet.now,
        restarts=0 if ready >= FORGIVEN_AFTER else lease.restarts,
        end_reason=f"{UNHEALTHY}: {sighting.said}",
    )
    return ill, EventKind.LEASE_UNHEALTHY


def _treated(fleet: Fleet, work: Workload, lease: Lease, kind: EventKind | None) -> tuple[Lease, EventKind | None]:
    """Return an unhealthy lease with the restart that is due now, or as failed if another host is due."""
    is_over = lease.unhealthy_since is None or is_stop_due(lease)
    if is_over or fleet.now - (lease.unhealthy_since or fleet.now) < _patience(fleet, lease):
        return lease, kind
    may_go, can_restart = only_copy.may_leave(lease, work), can_restart_in_place(fleet, lease)
    if can_restart and (lease.restarts < MOST_RESTARTS or not may_go):
        return replace(lease, restarts=lease.restarts + 1, restart_at=fleet.now), kind
    if not may_go:
        return lease, kind
    code = UNHEALTHY_HOST if _are_others_well(fleet, lease) else UNHEALTHY
    said = lease.end_reason.partition(": ")[2]
    after = f"after {lease.restarts} restarts" if can_restart else f"and {lease.market} cannot restart it in place"
    reason = f"{code}: its service does not answer {after}; {said}"
    return replace(lease, has_failed=True, end_reason=reason), EventKind.LEASE_UNHEALTHY


def can_restart_in_place(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease can be stopped and started with its disk: else its stop would be its release."""
    return fleet.rules_of(lease.market).can_pause


def _patience(fleet: Fleet, lease: Lease) -> timedelta:
    """Return for how long an unhealthy service is left before its next treatment."""
    back_off = min(BACK_OFF * 2 ** min(lease.restarts - 1, 10), MOST_BACK_OFF) if lease.restarts else timedelta()
    return back_off if _does_another_answer(fleet, lease) else max(back_off, ALONE)


def _does_another_answer(fleet: Fleet, lease: Lease) -> bool:
    """Return whether another watched service of ours is well, so that our own network is."""
    others = (each for each in fleet.leases if each.lease_id != lease.lease_id)
    return any(_is_well(each, fleet.workload(each.slot.workload)) for each in others)


def _are_others_well(fleet: Fleet, lease: Lease) -> bool:
    work = fleet.workload(lease.slot.workload)
    others = (each for each in fleet.leases if each.slot.workload == lease.slot.workload)
    return any(_is_well(each, work) for each in others if each.lease_id != lease.lease_id)


def _is_well(lease: Lease, work: Workload | None) -> bool:
    return is_watched(work, lease) and usefulness.is_useful(lease, work) and lease.failed_probes == 0


def ended(before: Lease, after: Lease, fleet: Fleet) -> tuple[Charge, ...]:
    """Return the useful time up to the moment in which a service became unhealthy."""
    if after.unhealthy_since is None or before.unhealthy_since is not None or before.ready_since is None:
        return ()
    useful = (after.accrued_until - before.ready_since).total_seconds()
    return (Charge(after.lease_id, fleet.now.date(), useful_seconds=max(useful, 0.0)),)


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease whose service stays unhealthy, or ends, again and again and must keep its disk."""
    for lease in fleet.leases:
        work = fleet.workload(lease.slot.workload)
        if work is None or lease.has_failed:
            continue
        if lease.unhealthy_since is None:
            yield from _of_ends(work, lease)
            continue
        can_restart = can_restart_in_place(fleet, lease)
        if (lease.restarts >= MOST_RESTARTS or not can_restart) and not only_copy.may_leave(lease, work):
            sentence = (
                f"{lease.slot} on host {lease.host_id} bills {lease.billing_rate}, but its service does not answer"
            )
            fix = f"its disk may hold the only copy of work: copy it, then `gpubid release {lease.slot}`"
            tried = f"after {lease.restarts} restarts" if can_restart else f"and {lease.market} cannot restart it"
            told = f"{sentence} since {lease.unhealthy_since:%H:%M} UTC, {tried}; {fix}"
            yield Alert(EventKind.ALERT_UNHEALTHY, lease.lease_id, told)


def _of_ends(work: Workload, lease: Lease) -> Iterator[Alert]:
    """Yield the alert of a service whose container ends again and again, and whose disk must be kept."""
    is_end = lease.interrupted_by is Cause.CONTAINER_EXIT and work.kind is WorkloadKind.SERVICE
    if is_end and lease.restarts > MOST_RESTARTS and not only_copy.may_leave(lease, work):
        sentence = f"{lease.slot} on host {lease.host_id} ends by itself again and again, and each start is paid for"
        fix = f"its disk may hold the only copy of work: copy it, then `gpubid release {lease.slot}`"
        yield Alert(EventKind.ALERT_UNHEALTHY, lease.lease_id, f"{sentence}; {fix}")
