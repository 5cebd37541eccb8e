"""The hosts of finished tasks that may go on with another task of their array, and what that saves.

Invariants:
1. Only a finished task gives its host away: its own guard reported a done code, this program watched it do so, and
   nothing else ends its lease.
2. A host is kept only where it saves more than `LEAST_SHARE` of a task, by measured figures. Without them it goes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from agent.decide.accounting import task_costs
from agent.decide.operators import operator_holds, reload
from agent.decide.pricing.cooldowns import InForce
from agent.decide.reconcile import ownership, workload_end
from agent.decide.reconcile.guards import guard_end
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms
from agent.domain.work.decision import Pause, Release
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.workload import Workload

LEAST_SHARE = 0.1
"""The least share of a task's time that a new start must take."""
WATCHED_WITHIN = timedelta(minutes=4)
"""How lately a done guard must have said something new: an older one may not look for another task any more."""
LOOKS_WITHIN = timedelta(minutes=12)
"""How lately its task was seen unfinished: it looks for another one for 15 minutes. The longest poll is 10 minutes."""
DONE = operator_holds.PAST[Word.DONE]
_ENDING = (Word.KILL, Word.PAUSE, Word.HELD, Word.LOCK, Word.DRAIN)


@dataclass(frozen=True, slots=True)
class Saving:
    """What a new start takes, and what a task takes, in hours."""

    start: float
    task: float

    @property
    def is_enough(self) -> bool:
        """Whether a kept host saves more than the least share of a task."""
        return self.start > LEAST_SHARE * self.task

    @property
    def sentence(self) -> str:
        """Both in words."""
        return f"a start takes {self.start * 60:.0f} minutes here, and a task {self.task * 60:.0f}"


def finished(
    fleet: Fleet, endings: Sequence[Pause | Release], others: Mapping[str, int], in_force: InForce
) -> Iterator[tuple[Lease, Workload, Saving]]:
    """Yield the leases that are to be released now because their task is done, and whose host may be kept.

    `others` counts, by lease id, the grounds on which each lease ends.
    """
    for ending in endings:
        lease, work = ending.lease, fleet.workload(ending.lease.slot.workload)
        if not isinstance(ending, Release) or ending.reason.code != DONE or others.get(lease.lease_id) != 1:
            continue
        if work is None or work.array is None or not _is_of_this_file(lease, work):
            continue
        if not _is_sound(fleet, lease, work, in_force) or not _has_ended(fleet, lease, work):
            continue
        saving = saving_of(fleet, work)
        if saving is not None and saving.is_enough:
            yield lease, work, saving


def _is_of_this_file(lease: Lease, work: Workload) -> bool:
    """Return whether a container has everything that the file gives to a task today, and its guard takes another."""
    terms, wanted = kept_terms.read(lease), kept_terms.container_digest(work)
    is_same = terms is not None and bool(wanted) and terms.container == wanted
    return is_same and lease.spec_digest == reload.spec_digest(work, lease.slot.index)


def _is_sound(fleet: Fleet, lease: Lease, work: Workload, in_force: InForce) -> bool:
    """Return whether a lease runs, is surely ours and at a settled price, and its host stays for another task."""
    view = fleet.markets.get(lease.market)
    row = view.instance(lease.instance_id) if view is not None and view.is_fresh else None
    if row is None or row.state is not InstanceState.RUNNING or lease.state is not LeaseState.RUNNING:
        return False
    if ownership.why_untouched(lease) or lease.doubted_rate is not None or len(fleet.occupants_of(lease.slot)) != 1:
        return False
    targets = (hold.of_workload(work.name), hold.of_lease(lease.lease_id), *hold.of_place(lease.host, lease.owner))
    if operator_holds.find(in_force.holds, (*_ENDING, Word.DONE), targets) is not None:
        return False
    if workload_end.is_avoided(work, lease.host, in_force) or not work.may_use(lease.market):
        return False
    is_leaving = lease.ends_at is not None and lease.ends_at - fleet.now < work.requirements.min_end_ahead
    return not is_leaving and lease.maintenance_told_at is None and lease.notice_at is None


def _has_ended(fleet: Fleet, lease: Lease, work: Workload) -> bool:
    """Return whether the lease's own guard finished its task, said so while we watched, and waits."""
    report = fleet.guard_reports.get(lease.intent_id)
    if report is None or report.end is None or report.end.lease != lease.intent_id:
        return False
    is_done = guard_end.of(fleet, lease, work).word is guard_end.Word.DONE
    return is_done and _is_watched(report, fleet)


def _is_watched(report: GuardReport, fleet: Fleet) -> bool:
    """Return whether a guard lives, and still looks for another task: when it is done it beats on for hours."""
    bounds = ((report.beat_changed_at, WATCHED_WITHIN), (report.unfinished_at, LOOKS_WITHIN))
    return all(at is not None and timedelta() <= fleet.now - at <= most for at, most in bounds)


def saving_of(fleet: Fleet, work: Workload) -> Saving | None:
    """Return the measured times of a start and of a task of an array; None while either is not known.

    A start is from the rent until the container ran, and the restore of a checkpoint where guards reported any. A task
    is the median of the finished ones, or the file's `task_hours` while they are few.
    """
    mine = {each.lease_id: each for each in fleet.guard_figures.values() if each.slot.workload == work.name}
    starts = [start.seconds for start in fleet.starts if start.lease_id in mine]
    restores = [each.restore_seconds for each in mine.values() if each.restore_seconds is not None]
    done = task_costs.marked(work, Word.DONE, fleet.holds, fleet.now)
    took = task_costs.hours(done, fleet.tasks)
    task = took.median if took is not None else work.array.task_hours if work.array is not None else None
    if not starts or task is None:
        return None
    return Saving((median(starts) + (median(restores) if restores else 0.0)) / 3600, task)
