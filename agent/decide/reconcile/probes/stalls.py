"""Stalled work: a lease that runs, perhaps with busy GPUs, and whose work shows no progress.

The measures of its workload follow each other, on one lease or on several: warn, restart, move, hold.

Invariants:
1. Only time between two readings of every sign counts. A dark market, an unread log or a bucket that is away make
   nothing stalled, nor does a restart of this daemon, which begins to count anew.
2. GPU load is no sign of progress, nor is a beat of the guard by itself.
3. A disk that may hold the only copy of work is not given up (rule 11): in place of a move its slot is held.
4. A host is blamed only while others of the same workload make progress.
5. Where a market cannot pause, a move takes the place of a restart.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile.guards import beat_stretch
from agent.decide.reconcile.probes import liveness, probe_pace
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work import only_copy
from agent.domain.work.deadline import ProgressSign
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.stall import OnStall, ProgressSeen, Quiet
from agent.domain.work.workload import Workload

NOT_READY = "not_ready"
"""The code of work that was not ready in time."""
STALLED = "stalled"
"""The code of work without progress, when its host is not blamed for it."""
STALLED_HOST = "stalled_host"
"""The same when others of its workload make progress, so that its host is blamed."""
OVER = frozenset({"ending", "done", "failed"})
"""Phases of a guard whose work has ended."""
FORGIVEN_AFTER = timedelta(hours=6)
"""After this long, and three times `stalled_after`, the measures begin with the first again. Assumed."""


def is_watched(work: Workload | None, lease: Lease) -> bool:
    """Return whether the work of a lease should show progress now."""
    if work is None or not work.stalled.is_asked or lease.state is not LeaseState.RUNNING or lease.run_since is None:
        return False
    is_ready = not work.ready.is_asked or lease.ready_since is not None
    is_due = lease.unhealthy_since is None and (is_ready or is_given_up_on(lease))
    return is_due and not lease.is_held and not lease.has_failed


def is_given_up_on(lease: Lease) -> bool:
    """Return whether nobody waits for the sign of readiness of a running lease any more, while the lease is kept."""
    return not lease.has_failed and lease.end_reason.startswith((NOT_READY, STALLED))


def counted(fleet: Fleet, known: Mapping[str, Quiet]) -> Mapping[str, Quiet]:
    """Return how long the work of each watched lease has shown no progress; a lease in the dark keeps its time."""
    found: dict[str, Quiet] = {}
    most_apart = {name: probe_pace.most_apart(fleet, name) for name in fleet.markets}
    for lease in fleet.leases:
        work, before = fleet.workload(lease.slot.workload), known.get(lease.lease_id)
        seen = _seen(fleet, lease, work) if work is not None and is_watched(work, lease) else None
        quiet = _counted(lease, before, seen, most_apart[lease.market]) if seen is not None else before
        if quiet is not None:
            found[lease.lease_id] = quiet
    return found


def _counted(lease: Lease, before: Quiet | None, seen: ProgressSeen, most: timedelta) -> Quiet:
    begun = (lease.run_since, lease.ready_since, lease.stalled_at, seen.begun_at)
    since = max(at for at in begun if at is not None)
    if before is None or before.since != since:
        return Quiet(since, seen.read_at, seen.news_at)
    if seen.news_at is not None and seen.news_at != before.news_at:
        return Quiet(since, seen.read_at, seen.news_at)
    passed = seen.read_at - before.read_at
    if passed <= timedelta():
        return before
    counts = passed if passed <= most else timedelta()
    return replace(before, read_at=seen.read_at, lasted=before.lasted + counts)


def _seen(fleet: Fleet, lease: Lease, work: Workload) -> ProgressSeen | None:
    """Return what all signs of a lease's work showed; None where one was not read, or its work does not run."""
    view = fleet.markets.get(lease.market)
    row = view.instance(lease.instance_id) if view is not None and view.is_fresh else None
    if view is None or row is None or row.state is not InstanceState.RUNNING:
        return None
    sighting = view.sightings.get(lease.instance_id)
    seen = sighting.progress if sighting is not None else None
    is_machine = not fleet.rules_of(lease.market).shows_container
    if lease.guard_run is None or work.guard is None or work.guard.bucket is None or (seen is None and not is_machine):
        return seen
    report = fleet.guard_reports.get(lease.intent_id)
    if report is None or (seen is None and not _shows_work(report, lease, work)):
        return None
    # Where a market shows a machine there is no container's log, and the guard's figures are all there is to read.
    return _with_guard(seen or ProgressSeen(lease.began, report.read_at), report, lease)


def _shows_work(report: GuardReport, lease: Lease, work: Workload) -> bool:
    """Return whether a guard's figures alone show that work goes on: it has begun, and they change often enough.

    Before its first beat the machine may still load the image.
    """
    beat, has_page = report.beat, work.deadline is not None and work.deadline.sign is ProgressSign.HTTP
    if has_page or beat is None or not beat_stretch.is_present(report, lease):
        return False
    is_carried = beat.manifest is not None and work.stalled.after > 2 * work.checkpoint.interval
    return beat.progress is not None or is_carried


def _with_guard(seen: ProgressSeen, report: GuardReport, lease: Lease) -> ProgressSeen | None:
    if report.beat is not None and report.beat.phase in OVER and beat_stretch.is_present(report, lease):
        return None
    news = (seen.news_at, report.work_changed_at, _restoring_at(report, lease))
    known = [at for at in news if at is not None]
    return replace(seen, read_at=min(seen.read_at, report.read_at), news_at=max(known) if known else None)


def _restoring_at(report: GuardReport, lease: Lease) -> datetime | None:
    """Return when the guard last reported that it restores a checkpoint: the work has not begun yet."""
    is_restoring = report.beat is not None and report.beat.phase == "restoring"
    return report.beat_changed_at if is_restoring and beat_stretch.has_changed(report, lease) else None


def judged(fleet: Fleet, work: Workload | None, lease: Lease) -> tuple[Lease, EventKind | None]:
    """Return a running lease after the last readings of its work, and the event of that."""
    if work is None or not is_watched(work, lease):
        return (renewed(lease) if work is None or not work.stalled.is_asked else lease), None
    quiet = fleet.quiet.get(lease.lease_id)
    if quiet is None:
        return lease, None
    if lease.stalled_at is not None and quiet.news_at is not None and quiet.news_at > lease.stalled_at:
        return _progressed(work, lease), EventKind.LEASE_PROGRESSED
    if quiet.lasted < work.stalled.after:
        return lease, None
    return _treated(fleet, work, lease, quiet)


def _progressed(work: Workload, lease: Lease) -> Lease:
    """Return a lease whose work goes on. If it was kept although it was not ready, it stays so."""
    after = renewed(lease)
    if not work.ready.is_asked or lease.ready_since is not None:
        return after
    return msgspec.structs.replace(after, end_reason=f"{NOT_READY}: its work goes on, and shows no sign of readiness")


def renewed(lease: Lease) -> Lease:
    """Return a lease whose work is not known to be stalled: it made progress, or its stretch of running is over."""
    if lease.stalled_since is None and lease.stalled_at is None:
        return lease
    known = "" if lease.end_reason.startswith(STALLED) and not lease.has_failed else lease.end_reason
    return msgspec.structs.replace(lease, stalled_since=None, stalled_at=None, end_reason=known)


def _treated(fleet: Fleet, work: Workload, lease: Lease, quiet: Quiet) -> tuple[Lease, EventKind | None]:
    """Return stalled work with the measure that is due now."""
    measure, since = due(fleet, work, lease), lease.stalled_since or fleet.now - quiet.lasted
    if measure is None and lease.stalled_at is not None:
        return lease, None
    code = STALLED_HOST if measure is OnStall.MOVE and _do_others_progress(fleet, work, lease) else STALLED
    said = f"{code}: its work shows no progress since {since:%H:%M} UTC at {lease.billing_rate}"
    after = msgspec.structs.replace(
        lease, stalled_since=since, stalled_at=fleet.now, end_reason=f"{said}; {_told(fleet, work, lease, measure)}"
    )
    if measure is OnStall.RESTART:
        after = msgspec.structs.replace(after, restarts=lease.restarts + 1, restart_at=fleet.now)
    return msgspec.structs.replace(after, has_failed=measure is OnStall.MOVE), EventKind.LEASE_STALLED


def due(fleet: Fleet, work: Workload, lease: Lease) -> OnStall | None:
    """Return the measure that is due once the work of a lease has stalled; None after the last one."""
    return _measure(fleet, work, lease, _taken(fleet, lease.slot))


def _measure(fleet: Fleet, work: Workload, lease: Lease, taken: int) -> OnStall | None:
    """Return the measure after so many; None after the last one."""
    measure = work.stalled.then[taken] if taken < len(work.stalled.then) else None
    if measure is OnStall.RESTART and not liveness.can_restart_in_place(fleet, lease):
        measure = OnStall.MOVE
    is_kept = measure is OnStall.MOVE and not only_copy.may_leave(lease, work)
    return OnStall.HOLD if is_kept else measure


TOLD: Mapping[OnStall | None, str] = {
    None: "nothing more is done",
    OnStall.WARN: "only a warning is given",
    OnStall.RESTART: "it is restarted in place",
    OnStall.MOVE: "another host is tried",
    OnStall.HOLD: "its slot is held",
}
"""What is said of each measure, and of the time after the last one."""


def _told(fleet: Fleet, work: Workload, lease: Lease, measure: OnStall | None) -> str:
    """Return what is done now; after a warning also what follows, as nobody may read it in time."""
    following = _measure(fleet, work, lease, _taken(fleet, lease.slot) + 1)
    if measure is not OnStall.WARN or following is None:
        return TOLD[measure]
    return f"{TOLD[measure]}, and after another {span_text.of(work.stalled.after)} of this {TOLD[following]}"


def _taken(fleet: Fleet, place: Slot) -> int:
    """Return how many measures were taken for a slot."""
    of_slot = (each for each in fleet.tallies if each.counted is Counted.STALLED and each.of == str(place))
    return max((each.count for each in of_slot if not each.is_over(fleet.now)), default=0)


def tallies(fleet: Fleet, changes: Iterable[LeaseChanged]) -> Iterator[tuple[Lease, Tally]]:
    """Yield the tally of each measure that these changes take."""
    for lease, work, measure in _measures(fleet, changes):
        if measure is not None:
            until = fleet.now + max(FORGIVEN_AFTER, 3 * work.stalled.after)
            count = _taken(fleet, lease.slot) + 1
            yield lease, Tally(Counted.STALLED, str(lease.slot), fleet.now, until, lease.end_reason, count=count)


def held(fleet: Fleet, changes: Iterable[LeaseChanged]) -> Iterator[tuple[Lease, str]]:
    """Yield each lease whose slot these changes hold for a person, with the reason."""
    for lease, work, measure in _measures(fleet, changes):
        if measure is OnStall.HOLD:
            why = lease.end_reason.removeprefix(f"{STALLED}: ").partition(";")[0]
            fix = f"; its disk may hold the only copy of work: copy it before `gpubid release {lease.slot}`"
            yield lease, why + ("" if only_copy.may_leave(lease, work) else fix)


def _measures(fleet: Fleet, changes: Iterable[LeaseChanged]) -> Iterator[tuple[Lease, Workload, OnStall | None]]:
    for change in changes:
        work, after = fleet.workload(change.after.slot.workload), change.after
        if work is not None and after.stalled_at is not None and after.stalled_at != change.before.stalled_at:
            yield after, work, due(fleet, work, change.before)


def _do_others_progress(fleet: Fleet, work: Workload, lease: Lease) -> bool:
    others = (each for each in fleet.leases if each.slot.workload == work.name and each.lease_id != lease.lease_id)
    spans = (fleet.quiet.get(each.lease_id) for each in others if is_watched(work, each) and each.stalled_at is None)
    return any(quiet is not None and quiet.news_at is not None and quiet.lasted < work.stalled.after for quiet in spans)


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield one alert for each lease that is paid for and whose work is stalled."""
    for lease in fleet.leases:
        since = lease.stalled_since
        if since is None or lease.state is not LeaseState.RUNNING or lease.has_failed:
            continue
        sentence = f"{lease.slot} on host {lease.host_id} bills {lease.billing_rate}, but its work shows no progress "
        look = f"see `gpubid logs {lease.slot}`"
        yield Alert(EventKind.ALERT_STALLED, lease.lease_id, f"{sentence}since {since:%H:%M} UTC; {look}")
