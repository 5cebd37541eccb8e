"""Tasks of an array whose work failed: each is tried again, or held alone while the others go on.

Invariants:
1. Until the array has proved itself its failures count together, and enough of them hold the whole workload.
2. After that a failure counts for its own task. Failures of many tasks in a row end all starts; running tasks go on.
3. A task is tried again only if its lease's disk may be lost, and for a while on another host.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from agent.decide.facts import Marked
from agent.decide.pricing import cooldowns
from agent.decide.reconcile.tasks import array_proof
from agent.domain.fleet import Fleet
from agent.domain.record import hold as holds
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease
from agent.domain.record.tally import OF_A_TASK, Counted, Tally
from agent.domain.work.decision import Reason
from agent.domain.work.only_copy import may_leave
from agent.domain.work.workload import Workload

KEPT = timedelta(days=30)
"""How long a failure of a task counts."""
AVOIDED = timedelta(hours=2)
"""How long no task of an array begins on a host on which one of them failed. Nobody knows whether host or task was the
cause, so the host is neither blamed nor closed to other workloads. Assumed."""


def is_one_of_many(fleet: Fleet, work: Workload) -> bool:
    """Return whether a failure is that of one task: its array has proved itself."""
    return work.array is not None and array_proof.has_proved_itself(fleet, work, holds.in_force(fleet.holds, fleet.now))


def at_once(fleet: Fleet, lease: Lease, why: str) -> Iterator[Marked]:
    """Yield the marks of a task whose container ended right after its start."""
    mark = Tally(Counted.FAST_EXIT, str(lease.slot), fleet.now, fleet.now + KEPT, why, lease.lease_id)
    sentence = f"{lease.slot} on host {lease.host_id}: {why}"
    yield Marked(mark, lease.slot.workload, lease, EventKind.WORKLOAD_FAILED_AT_ONCE, sentence)
    yield from _avoided(fleet, lease, why)


def later(fleet: Fleet, lease: Lease, why: str) -> Iterator[Marked]:
    """Yield the marks of a task whose work failed."""
    mark = Tally(Counted.FAILED_TASK, str(lease.slot), fleet.now, fleet.now + KEPT, why, lease.lease_id)
    yield Marked(mark, lease.slot.workload, lease, EventKind.WORKLOAD_TASK_FAILED, f"{lease.slot}: {why}")
    yield from _avoided(fleet, lease, why)


def _avoided(fleet: Fleet, lease: Lease, why: str) -> Iterator[Marked]:
    """Yield the mark of the host on which a task failed. The next machine of a pool is another one anyway."""
    if not lease.host.is_pool:
        mark = Tally(Counted.AVOIDED, lease.slot.workload, fleet.now, fleet.now + AVOIDED, why, str(lease.host))
        yield Marked(mark, lease.slot.workload, None, None)


def is_tried_again(fleet: Fleet, work: Workload, lease: Lease) -> bool:
    """Return whether a task whose work failed on a lease is tried again on another one."""
    tries = cooldowns.in_force(fleet).tallies_of(Counted.FAILED_TASK, str(lease.slot))
    before = sum(each.where != lease.lease_id for each in tries)
    return work.array is not None and before < work.array.retries and may_leave(lease, work)


def stopped(fleet: Fleet, work: Workload, why: str) -> Marked:
    """Return the mark of an array of which no further task begins, while those that run go on."""
    target = holds.of_workload(work.name)
    mark = OperatorHold(Word.DRAIN, target, fleet.now, f"gpubid, because {why}")
    sentence = f"{work.name} begins no further task: {why}; look at them, then `gpubid resume {work.name}`"
    return Marked(mark, work.name, None, EventKind.WORKLOAD_HELD, sentence)


def held(fleet: Fleet, work: Workload, known: Iterable[ExpiringRecord]) -> Iterator[tuple[holds.Target, str]]:
    """Yield the tasks that failed at once too often, with the reason."""
    if not is_one_of_many(fleet, work):
        return
    failed = (each for each in _tallies(work, known) if each.counted is Counted.FAST_EXIT and "/" in each.of)
    exits = Counter(each.of for each in failed)
    for place, number in exits.items():
        if number >= work.max_fast_exits:
            yield holds.Target(holds.TargetKind.SLOT, place), f"it failed at once {number} times"


def why_stopped(fleet: Fleet, work: Workload, known: Iterable[ExpiringRecord]) -> str:
    """Return why no further task of an array begins: too many failed in a row; empty if not.

    Before the array has proved itself every failure counts, after that every task that failed since the last one that
    was done.
    """
    if work.array is None:
        return ""
    records = tuple(known)
    failed = _tallies(work, records)
    if not is_one_of_many(fleet, work):
        if len(failed) >= work.max_fast_exits:
            return f"{len(failed)} of its tasks failed and none has worked: correct the command or the image"
        return ""
    done_at = _last_done(work, records)
    slots = {each.of for each in failed if "/" in each.of and (done_at is None or each.since > done_at)}
    if len(slots) < work.max_fast_exits:
        return ""
    return f"{len(slots)} of its tasks failed in a row"


def _tallies(work: Workload, known: Iterable[ExpiringRecord]) -> list[Tally]:
    mine = (each for each in known if isinstance(each, Tally) and each.counted in OF_A_TASK)
    return [each for each in mine if each.of.partition("/")[0] == work.name]


def _last_done(work: Workload, known: Iterable[ExpiringRecord]) -> datetime | None:
    marks = (each for each in known if isinstance(each, OperatorHold) and each.word is Word.DONE)
    return max((each.since for each in marks if each.target.workload == work.name), default=None)


def release_reason(fleet: Fleet, lease: Lease, in_force: cooldowns.InForce) -> Reason | None:
    """Return why a lease on which a task failed is released, so that the task is tried again on another one."""
    work, failed = fleet.workload(lease.slot.workload), (Counted.FAILED_TASK, str(lease.slot), lease.lease_id)
    if failed not in in_force.tallies or work is None or not fleet.is_seen(lease) or not may_leave(lease, work):
        return None
    targets = holds.of_slot(lease.slot), holds.of_workload(lease.slot.workload)
    if any((Word.HELD, target) in in_force.holds for target in targets):
        return None
    return Reason("task_failed", f"its work failed and is tried again: {in_force.tallies[failed].ground}")
