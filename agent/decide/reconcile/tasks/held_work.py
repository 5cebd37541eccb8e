"""Work that waits for a person: a slot, or a workload whose starts fail everywhere.

Invariant: a workload of which a lease has worked is not stopped for the failed starts of others.
"""

from collections.abc import Iterable, Iterator, Mapping

from agent.decide.facts import Marked
from agent.decide.reconcile.guards import guard_refusal
from agent.decide.reconcile.tasks import failed_tasks
from agent.domain.fleet import Fleet
from agent.domain.record import hold as holds
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.hold import OperatorHold, Target, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.work.array_terms import DEFAULT_AT_ONCE
from agent.domain.work.workload import Workload, WorkloadKind


def hold(fleet: Fleet, lease: Lease | None, target: Target, why: str) -> Marked:
    """Return the mark of a slot or workload that waits for a person."""
    name, work = target.spoken, fleet.workload(target.workload)
    # The work of a service is never done, and it may have no lease left.
    is_service = work is not None and work.kind is WorkloadKind.SERVICE
    way = f"; `gpubid release {name}` ends a lease that it still has" if is_service else f" or `gpubid done {name}`"
    sentence = f"{name} is held: {why}; look at it, then `gpubid resume {name}`{way}"
    return Marked(
        OperatorHold(Word.HELD, target, fleet.now, why), target.workload, lease, EventKind.WORKLOAD_HELD, sentence
    )


def over_budget(fleet: Fleet, standing: Iterable[ExpiringRecord], changed: Mapping[str, Lease]) -> Iterator[Marked]:
    """Yield the holds of workloads that fail everywhere, counted over this cycle's marks and the earlier ones.

    A workload of which a lease has worked only rents nothing more, until no lease of it is left. `changed` are the
    leases that this listing changed.
    """
    known = tuple(standing)
    tallies = {(rest.counted, rest.of, rest.where) for rest in known if isinstance(rest, Tally)}
    stopped = {(rest.word, rest.target) for rest in known if isinstance(rest, OperatorHold)}
    for work in fleet.workloads:
        target = holds.of_workload(work.name)
        if (Word.HELD, target) in stopped:
            continue
        is_one_task = failed_tasks.is_one_of_many(fleet, work)
        yield from (hold(fleet, None, place, why) for place, why in failed_tasks.held(fleet, work, known))
        lanes = _lanes(work) if is_one_task else 1
        if why := guard_refusal.why_held(work, known) or _why_over_budget(work, tallies, lanes):
            yield _stopped(fleet, work, why, changed, is_drained=(Word.DRAIN, target) in stopped)
        elif failed := failed_tasks.why_stopped(fleet, work, known):
            yield failed_tasks.stopped(fleet, work, failed) if is_one_task else hold(fleet, None, target, failed)


def _why_over_budget(work: Workload, tallies: Iterable[tuple[Counted, str, str]], lanes: int) -> str:
    """Return which starts of a workload failed too often; empty if none did."""
    exits, starts = (_count(tallies, what, work) for what in (Counted.FAST_EXIT, Counted.FAILED_START))
    if exits >= work.max_fast_exits:
        return f"it failed at once on {exits} hosts: correct the command or the image"
    return f"{starts} starts failed within a day" if starts >= work.max_failed_starts * lanes else ""


def _open_leases(fleet: Fleet, work: Workload, changed: Mapping[str, Lease]) -> list[Lease]:
    mine = (changed.get(each.lease_id, each) for each in fleet.leases if each.slot.workload == work.name)
    return [each for each in mine if each.is_open and not each.is_held and each.state is not LeaseState.RELEASING]


def _has_worked(lease: Lease, work: Workload) -> bool:
    """Return whether a lease has been of use and may be again, also if it is outbid or unseen at this instant."""
    was_useful = lease.was_ready if work.ready.is_asked else lease.has_run
    has_ended = lease.state is LeaseState.EXITED or lease.end_reason == Counted.FAST_EXIT.value
    return was_useful and not lease.has_failed and not has_ended


def _stopped(fleet: Fleet, work: Workload, why: str, changed: Mapping[str, Lease], *, is_drained: bool) -> Marked:
    """Return the hold of a workload; if one of its leases has worked, only the mark that it rents nothing more."""
    target, mine = holds.of_workload(work.name), _open_leases(fleet, work, changed)
    if not any(_has_worked(each, work) for each in mine) and not (is_drained and mine):
        return hold(fleet, None, target, why)
    rest = OperatorHold(Word.DRAIN, target, fleet.now, f"gpubid, because {why}")
    sentence = f"{work.name} rents nothing more, and what runs goes on: {why}; then `gpubid resume {work.name}`"
    return Marked(rest, work.name, None, EventKind.WORKLOAD_HELD, sentence)


def _lanes(work: Workload) -> int:
    """Return how many slots of an array start beside each other: as many as by default if a budget is its width."""
    return work.most_live if work.array is None or work.array.at_once else min(work.slots, DEFAULT_AT_ONCE)


def _count(tallies: Iterable[tuple[Counted, str, str]], counted: Counted, work: Workload) -> int:
    return sum((what, of) == (counted, work.name) for what, of, _ in tallies)
