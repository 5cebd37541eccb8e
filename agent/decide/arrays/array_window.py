"""The empty slots of an array that may not begin yet.

Invariants:
1. An open lease, a rent in doubt and an instance with the slot's label count as live, whatever their state. Only a slot
   that is held alone, with its lease stopped, does not.
2. Of the empty slots the first in the array's order may begin, as many as there is room for. One in a cooldown keeps
   its place.
3. Until the array has proved itself, at most `FIRST` slots are live, so that a wrong command costs few leases. Then
   held slots count too.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from agent.decide.reconcile import orphans
from agent.domain.fleet import Fleet
from agent.domain.record.hold import EVERYTHING, Holds, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload

FIRST = 2
"""The most live slots of an array that has not proved itself."""
PROVEN_AFTER = timedelta(minutes=10)
"""An array has proved itself once one of its slots has run for this long, or is done."""
WAITS = "array_waits"
"""The code of the reason why an empty slot of an array does not begin yet."""
_SHUT = (Word.DONE, Word.KILL, Word.HELD, Word.PAUSE, Word.LOCK, Word.DRAIN)
"""The words under which an empty slot does not begin anyway."""


def waiting(fleet: Fleet, work: Workload, holds: Holds) -> Mapping[Slot, Reason]:
    """Return the empty slots of an array that may not begin yet, each with the reason; nothing for other work."""
    terms, shut = work.array, {target.name for word, target in holds if target.workload == work.name and word in _SHUT}
    if terms is None or (Word.KILL, EVERYTHING) in holds or work.name in shut:
        return {}
    is_proven = has_proved_itself(fleet, work, holds)
    taken = set(_taken(fleet, work))
    held = {Slot(work.name, index) for index in _held(work, holds)}
    live = taken - _stopped(fleet, held) if is_proven else taken | held
    empty = [place for place in work.places if place not in taken and str(place) not in shut]
    most = most_live(work, terms, is_proven=is_proven)
    reason = _reason(work, most, is_proven=is_proven)
    return dict.fromkeys(terms.ordered(empty)[max(most - len(live), 0) :], reason)


def most_live(work: Workload, terms: ArrayTerms, *, is_proven: bool) -> int:
    """Return the most slots of an array that may be live now, leaving aside budgets."""
    most = work.slots if terms.at_once is None else terms.at_once
    return most if is_proven else min(most, FIRST)


def has_proved_itself(fleet: Fleet, work: Workload, holds: Holds) -> bool:
    """Return whether a slot of an array is done, or has run for long enough."""
    if any(word is Word.DONE and target.workload == work.name for word, target in holds):
        return True
    return any(_has_run_long(lease, fleet) for lease in fleet.leases if lease.slot.workload == work.name)


def _has_run_long(lease: Lease, fleet: Fleet) -> bool:
    is_running = lease.state is LeaseState.RUNNING and lease.run_since is not None
    return is_running and lease.run_since is not None and fleet.now - lease.run_since >= PROVEN_AFTER


def _taken(fleet: Fleet, work: Workload) -> Iterator[Slot]:
    """Yield the slots that something bills for, or may."""
    yield from (lease.slot for lease in fleet.leases if lease.is_open and lease.slot.workload == work.name)
    yield from (
        intent.slot
        for intent in fleet.intents
        if intent.is_open and intent.kind.is_paying and intent.slot.workload == work.name
    )
    yield from (place for place, _ in orphans.claims(fleet) if place.workload == work.name)


def _held(work: Workload, holds: Holds) -> Iterator[int]:
    for word, target in holds:
        if word is Word.HELD and target.workload == work.name and target.index is not None:
            yield target.index


def _stopped(fleet: Fleet, held: set[Slot]) -> set[Slot]:
    """Return those of the held slots for which nothing bills but a disk."""
    at_work = {lease.slot for lease in fleet.leases if lease.is_open and not lease.is_down}
    return {place for place in held - at_work if fleet.paying_intent(place) is None}


def _reason(work: Workload, most: int, *, is_proven: bool) -> Reason:
    if is_proven:
        return Reason(WAITS, f"it begins when fewer than {most} slots of {work.name} are live")
    minutes = PROVEN_AFTER // timedelta(minutes=1)
    sentence = f"until a slot of {work.name} is done or has run for {minutes} minutes, at most {most} are live"
    return Reason(WAITS, sentence)
