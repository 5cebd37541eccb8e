"""Runs of slots that begin now: the first of each, and the next if the spec has changed or a person orders it.

Invariants:
1. A run never begins twice and its number never falls, so that the end of another run is never mistaken for its own.
2. A run that never had a lease in this ledger, and that the bucket has a later run of, is another ledger's: the first
   run gives way to the last run in the bucket, and a run that was ordered to the one after that.
3. A renamed workload keeps its runs, with the folders in which they began.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from agent.decide.operators import reload
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_run import GuardRun
from agent.domain.slot import Slot
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
    asked = [work for work in workloads if work.guard is not None and work.guard.bucket is not None]
    # A workload of that name today is another one, with runs of its own.
    names = {work.name for work in workloads}
    renamed = [run for work in asked if work.was not in names for run in _renamed(known, work)]
    present = last((*known, *renamed))
    return (*renamed, *(run for work in asked for run in _begun(present, work, now)))


def next_run(present: GuardRun, now: datetime) -> GuardRun:
    """Return the run after the present one, which does the work from the beginning."""
    return replace(present, run=present.run + 1, name=present.slot.workload, begun_at=now)


def beyond(present: GuardRun, highest: int, now: datetime) -> tuple[GuardRun, Event] | None:
    """Return the run to take instead of one that never had a lease, if the bucket has a later run of its slot.

    Nobody ordered the first run of a new ledger: its work goes on where it was. A later one was ordered or is of
    another spec: it does the work from the beginning.
    """
    if highest <= present.run:
        return None
    is_ordered = present.run > FIRST
    run = replace(present, run=highest + is_ordered, begun_at=now)
    why = f"{present.slot} has run {highest} in its bucket, which this ledger did not know: "
    why += f"it begins run {run.run}, without its checkpoints" if is_ordered else "it goes on with that run"
    return run, Event(now, EventKind.WORKLOAD_RUN_BEGUN, now, present.slot.workload, present.slot.index, reason=why)


def news(begun: Iterable[GuardRun]) -> Iterator[Event]:
    """Yield an event for each run that is not its slot's first, since it leaves checkpoints behind."""
    for run in begun:
        if run.run > FIRST:
            place = run.slot
            why = f"{place} begins run {run.run}, without the checkpoints of run {run.run - 1}"
            at = run.begun_at
            yield Event(at, EventKind.WORKLOAD_RUN_BEGUN, at, place.workload, place.index, reason=why)


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
    digest = reload.spec_digest(work)
    for place in work.places:
        before = present.get(place)
        if before is None:
            yield GuardRun(place, FIRST, work.name, digest, now)
        elif before.spec_digest != digest:
            yield replace(next_run(before, now), spec_digest=digest)
