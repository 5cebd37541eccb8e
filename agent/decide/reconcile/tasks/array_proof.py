"""Whether an array has proved itself: until then a failure may be the fault of its command, then only of one task.

Invariants:
1. The proof is kept. An array whose leases were all lost does not begin to be doubted again (rule 19). Once a person
   resumed it, only what began later proves anything: its command may be another one.
2. Only time of a container counts. Where a market shows a machine and no container, it begins at the sign of readiness,
   or else after the time of a slow load; where a guard reports, not before its first beat.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agent.decide.facts import Marked
from agent.decide.reconcile.guards import beat_stretch
from agent.decide.reconcile.probes import stalls, taken_over
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record.hold import Holds, Target, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.workload import Workload

PROVEN_AFTER = timedelta(minutes=10)
"""An array has proved itself once a container of it has run for this long, or a slot is done."""
KEPT = timedelta(days=30)
"""How long the proof by a run is kept, and a doubt; the mark of a slot that is done lasts longer."""


def has_proved_itself(fleet: Fleet, work: Workload, holds: Holds) -> bool:
    """Return whether a slot of an array is done, or a container has run for long enough, since a person resumed it."""
    done = (target for word, target in holds if word is Word.DONE and target.workload == work.name)
    if any(_proves(fleet, work, target) for target in done):
        return True
    return _is_kept(fleet, work) or _runs_long(fleet, work)


def before_doubt(fleet: Fleet, work: Workload) -> frozenset[Slot]:
    """Return the slots whose lease is older than a person's resume: they prove nothing, and disprove nothing."""
    doubted = _doubted_at(fleet, work)
    if doubted is None:
        return frozenset()
    mine = [lease for lease in fleet.leases if lease.slot.workload == work.name and not fleet.is_leaving(lease)]
    later = {lease.slot for lease in mine if lease.opened_at > doubted}
    rented = {intent.slot for intent in fleet.intents if intent.is_open and intent.kind.is_paying}
    return frozenset(lease.slot for lease in mine) - later - rented


def marks(fleet: Fleet) -> Iterator[Marked]:
    """Yield the mark of each array that has just proved itself by a run."""
    for work in fleet.workloads:
        if work.array is not None and not _is_kept(fleet, work) and _runs_long(fleet, work):
            why = f"a container has run for {span_text.of(PROVEN_AFTER)}"
            yield Marked(Tally(Counted.RAN, work.name, fleet.now, fleet.now + KEPT, why), work.name, None, None)


def doubt(name: str, now: datetime) -> Tally:
    """Return the mark that an array has to prove itself again."""
    return Tally(Counted.DOUBTED, name, now, now + KEPT, "a person resumed it, perhaps with another command")


def _proves(fleet: Fleet, work: Workload, done: Target) -> bool:
    """Return whether the mark of a task that is done shows that the command works: it began since the last doubt."""
    doubted = _doubted_at(fleet, work)
    account = fleet.tasks.get(Slot(work.name, done.index)) if done.index is not None else None
    return doubted is None or (account is not None and account.began_at > doubted)


def _doubted_at(fleet: Fleet, work: Workload) -> datetime | None:
    doubts = (each for each in fleet.tallies if each.counted is Counted.DOUBTED and each.of == work.name)
    return max((each.since for each in doubts if not each.is_over(fleet.now)), default=None)


def _is_kept(fleet: Fleet, work: Workload) -> bool:
    proofs = (each for each in fleet.tallies if each.counted is Counted.RAN and each.of == work.name)
    return any(not each.is_over(fleet.now) for each in proofs)


def _runs_long(fleet: Fleet, work: Workload) -> bool:
    doubted = _doubted_at(fleet, work)
    mine = (lease for lease in fleet.leases if lease.slot.workload == work.name)
    return any(_has_run_long(lease, fleet, work) for lease in mine if doubted is None or lease.opened_at > doubted)


def _has_run_long(lease: Lease, fleet: Fleet, work: Workload) -> bool:
    since = _container_since(lease, fleet, work) if lease.state is LeaseState.RUNNING else None
    return since is not None and fleet.now - since >= PROVEN_AFTER


def _container_since(lease: Lease, fleet: Fleet, work: Workload) -> datetime | None:
    """Return since when the container of a running lease has surely run; None: it may still load its image."""
    if lease.run_since is None or fleet.rules_of(lease.market).shows_container:
        return lease.run_since
    if work.ready.is_asked:
        return lease.ready_since
    if lease.guard_run is not None and not _works(fleet.guard_reports.get(lease.intent_id), lease):
        return None
    return lease.run_since + taken_over.slow_loading(work)


def _works(report: GuardReport | None, lease: Lease) -> bool:
    """Return whether a guard's last beat says that the work goes on."""
    if report is None or report.beat is None:
        return False
    return beat_stretch.is_present(report, lease) and report.beat.phase not in stalls.OVER
