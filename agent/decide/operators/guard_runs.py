"""Runs of slots that begin now: the first of each, and the next if the spec has changed or a person orders it.

Invariants:
1. A run never begins twice and its number never falls, so that the end of another run is never mistaken for its own.
2. A run that never had a lease in this ledger gives way to another ledger's run in the bucket: the first run to the
   highest one there, or to the next after it if the spec has changed, and a run that was ordered to that next one. In
   a restored ledger a run that worked, or that a changed file began again, gives way to the highest one too.
3. A renamed workload keeps its runs, with the folders in which they began.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from agent.decide.operators import reload
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_run import GuardRun
from agent.domain.slot import Slot
from agent.domain.work.deadline import Progress
from agent.domain.work.run_claim import KeptRun
from agent.domain.work.workload import Workload

FIRST = 1


def last(known: Iterable[GuardRun]) -> Mapping[Slot, GuardRun]:
    """Return the present run of each slot that has any."""
    found: dict[Slot, GuardRun] = {}
    for run in known:
        if run.slot not in found or run.run > found[run.slot].run:
            found[run.slot] = run
    return found


def due(known: Collection[GuardRun], workloads: Collection[Workload], now: datetime) -> tuple[GuardRun, ...]:
    """Return the runs to record: those of a workload's old name under its new one, and those that begin."""
    asked = [work for work in workloads if work.guard is not None and work.guard.is_carrying]
    # A workload of that name today is another one, with runs of its own.
    names = {work.name for work in workloads}
    renamed = [run for work in asked if work.was not in names for run in _renamed(known, work)]
    present = last((*known, *renamed))
    return (*renamed, *(run for work in asked for run in _begun(present, work, now)))


def next_run(present: GuardRun, now: datetime) -> GuardRun:
    """Return the run after the present one, which does the work from the beginning."""
    return replace(present, run=present.run + 1, name=present.slot.workload, begun_at=now)


@dataclass(frozen=True, slots=True)
class Beyond:
    """The run to take instead of one that never had a lease, and the event about it."""

    run: GuardRun
    event: Event
    finished: str = ""
    """How its work was done, if nothing is left to do."""


def is_by_file(present: GuardRun, known: Iterable[GuardRun]) -> bool:
    """Return whether a changed file began a run, and no person: its spec is not that of the run before it."""
    before = next((each for each in known if (each.slot, each.run) == (present.slot, present.run - 1)), None)
    return before is not None and before.spec_digest != present.spec_digest


def beyond(present: GuardRun, kept: KeptRun | None, now: datetime, *, goes_on: bool = False) -> Beyond | None:
    """Return the run to take instead of the present one, if the bucket has a run of its slot that the ledger lacks.

    `kept` is the highest one. Nobody ordered the first run of a new ledger: its work is done or goes on where it was,
    unless its spec is another one. A later run was ordered or is of another spec: it does the work from the beginning.
    One that `goes_on` is behind in a restored ledger: it worked before the backup, or the same file began it again. The
    run in the bucket was begun since then, and goes on.
    """
    if kept is None or kept.number < present.run:
        return None
    claim, name, is_same = kept.claim, kept.name or present.name, kept.is_in_folder_of(present)
    if is_same and (claim is None or claim.is_of(present)):
        return None
    is_ordered = present.run > FIRST and not goes_on
    is_other = claim is not None and claim.spec != present.spec_digest
    if kept.finished and not is_ordered:
        why = f"which is done by {kept.finished}"
        run = replace(present, run=kept.number, name=name, begun_at=_begun_at(kept, now))
        return _taken(present, run, kept, why, now)
    if is_ordered or is_other:
        run = replace(present, run=kept.number + 1, begun_at=now)
        other = " of another image, GPU or disk" if is_other else ""
        return _taken(present, run, kept, f"it begins run {run.run}, without its checkpoints{other}", now)
    run = replace(present, run=kept.number, name=name, begun_at=_begun_at(kept, now))
    return None if is_same else _taken(present, run, kept, "it goes on with that run", now)


def _begun_at(kept: KeptRun, now: datetime) -> datetime:
    """Return when a run that goes on began: by its claim, which knows the run again, but not later than now."""
    return min(kept.claim.begun_at, now) if kept.claim is not None else now


def _taken(present: GuardRun, run: GuardRun, kept: KeptRun, sequel: str, now: datetime) -> Beyond:
    place = present.slot
    why = f"{place} has run {kept.number} in its bucket, which this ledger did not know: {sequel}"
    finished = kept.finished if run.run == kept.number else ""
    event = Event(now, EventKind.WORKLOAD_RUN_BEGUN, now, place.workload, place.index, reason=why)
    return Beyond(run, event, finished)


def news(begun: Iterable[GuardRun]) -> Iterator[Event]:
    """Yield an event for each run that is not its slot's first, since it leaves checkpoints behind."""
    for run in begun:
        if run.run > FIRST:
            place = run.slot
            why = f"{place} begins run {run.run}, without the checkpoints of run {run.run - 1}"
            at = run.begun_at
            yield Event(at, EventKind.WORKLOAD_RUN_BEGUN, at, place.workload, place.index, reason=why)


def from_nothing(begun: Iterable[GuardRun], progress: Mapping[str, Progress], now: datetime) -> tuple[Progress, ...]:
    """Return the progress of workloads whose work begins anew with these runs; it was that of an earlier run."""
    names = dict.fromkeys(run.slot.workload for run in begun if run.run > FIRST)
    known = (progress[name] for name in names if name in progress)
    return tuple(Progress(each.workload, 0.0, now, each.since, "start") for each in known)


def _renamed(known: Collection[GuardRun], work: Workload) -> Iterator[GuardRun]:
    """Yield the old name's runs under the new one.

    If the new name has runs already, only higher numbers are taken over.
    """
    if not work.was:
        return
    highest = {run.slot.index: run.run for run in last(run for run in known if run.slot.workload == work.name).values()}
    for run in known:
        if run.slot.workload == work.was and run.run > highest.get(run.slot.index, 0):
            yield replace(run, slot=Slot(work.name, run.slot.index))


def _begun(present: Mapping[Slot, GuardRun], work: Workload, now: datetime) -> Iterator[GuardRun]:
    for place in work.places:
        digest = reload.spec_digest(work, place.index)
        before = present.get(place)
        if before is None:
            yield GuardRun(place, FIRST, work.name, digest, now)
        elif before.spec_digest != digest:
            yield replace(next_run(before, now), spec_digest=digest)
