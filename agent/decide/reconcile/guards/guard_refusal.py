"""Starts that failed because the guard could not run, although the work has a checkpoint.

Invariants:
1. Such a start says nothing about its host. Another host is tried, and the host's record does not count it.
2. After `MOST` of them the workload is held: the cause is its bucket or its image, and each try costs money.
3. A lease whose guard reported is not given up for a line of its log. The exception is a guard whose last report in
   this stretch of running says that it failed, without an end of its command. A guard that refuses to start while its
   bucket answers ends like this.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.guards import beat_stretch
from agent.domain.fleet import Fleet, MarketView
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.workload import CheckpointPlace, Workload

GUARD_REFUSED = "guard_refused"
"""The code that begins the end reason of such a start."""
MOST = 2


def is_awaited(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether the log may say why a lease's guard did not start: it never reported, or failed without an end."""
    report = fleet.guard_reports.get(lease.intent_id)
    if work.guard is None or lease.guard_run is None:
        return False
    return report is None or report.beat is None or _failed_to_start(report, lease)


def _failed_to_start(report: GuardReport, lease: Lease) -> bool:
    has_end = report.end is not None or report.unread_end
    has_failed = report.beat is not None and report.beat.phase == "failed"
    return has_failed and beat_stretch.is_present(report, lease) and not has_end


def seen(fleet: Fleet, view: MarketView, lease: Lease, so_far: LeaseChanged | None) -> LeaseChanged | None:
    """Return the change to a failed start if the log ends with the prelude's refusal, else `so_far`."""
    work, sighting = fleet.workload(lease.slot.workload), view.sightings.get(lease.instance_id)
    if work is None or sighting is None or not sighting.refusal or (so_far is not None and so_far.kind is not None):
        return so_far
    now = so_far.after if so_far is not None else lease
    is_of_now = sighting.at >= now.began
    if now.has_failed or now.state is LeaseState.RELEASING or not is_of_now or not is_awaited(fleet, lease, work):
        return so_far
    if work.checkpoint.place is CheckpointPlace.DISK and not work.may_lose_disk and now.runs > 1:
        # The disk may have newer work than the bucket. A batch is held anyway when its container ends.
        return so_far
    after = replace(now, has_failed=True, end_reason=f"{GUARD_REFUSED}: {sighting.refusal}")
    return LeaseChanged(lease, after, EventKind.LEASE_NOT_READY, so_far.charges if so_far is not None else ())


def why_held(work: Workload, known: Iterable[ExpiringRecord]) -> str:
    """Return why a workload is held for such starts; empty while they are few."""
    tallies = (rest for rest in known if isinstance(rest, Tally) and rest.ground.startswith(GUARD_REFUSED))
    mine = (each for each in tallies if (each.counted, each.of) == (Counted.FAILED_START, work.name))
    refused = {each.where: each.ground for each in mine}
    if len(refused) < MOST:
        return ""
    last = next(reversed(refused.values())).removeprefix(f"{GUARD_REFUSED}: ")
    return f"{len(refused)} starts failed although it has a checkpoint, the last one because: {last}"
