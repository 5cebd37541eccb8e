"""The empty slots that may not begin yet: of an array, and of work that comes after other work.

Invariants:
1. An open lease, a rent in doubt and an instance with the slot's label count as live, whatever their state. Only a slot
   that is held alone or over its lease's `max_running`, with its lease stopped, does not, nor a lease that a slot no
   longer waits for.
2. Of the empty slots the first in the array's order may begin, as many as there is room for. One in a cooldown keeps
   its place.
3. Until the array has proved itself, at most `FIRST` slots are live, so that a wrong command costs few leases. Then
   held slots count too, but no lease from before a person's last resume.
"""

from collections.abc import Mapping, Sequence

from agent.decide.arrays import live_slots
from agent.decide.limits import task_reserve
from agent.decide.reconcile.tasks import array_proof
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record.hold import EVERYTHING, Holds, Word
from agent.domain.slot import Slot
from agent.domain.work.array_terms import DEFAULT_AT_ONCE, ArrayTerms
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload

FIRST = 2
"""The most live slots of an array that has not proved itself."""
WAITS, UNPROVEN, WAITS_FOR_OTHERS = "array_waits", "array_unproven", "waits_for_workload"
"""The codes of the reasons why an empty slot does not begin yet. A decision is recorded again when its code changes."""
_SHUT = (Word.DONE, Word.KILL, Word.HELD, Word.PAUSE, Word.LOCK, Word.DRAIN)
"""The words under which an empty slot does not begin anyway."""


def waiting(fleet: Fleet, work: Workload, holds: Holds) -> Mapping[Slot, Reason]:
    """Return the empty slots of a workload that may not begin yet, each with the reason."""
    unfinished = next((name for name in work.after if not _is_finished(fleet.workload(name), holds)), None)
    if work.array is None and unfinished is None:
        return {}
    shut = {target.name for word, target in holds if target.workload == work.name and word in _SHUT}
    if (Word.KILL, EVERYTHING) in holds or work.name in shut:
        return {}
    taken = set(live_slots.of(fleet, work))
    empty = [place for place in work.places if place not in taken and str(place) not in shut]
    if unfinished is not None:
        return dict.fromkeys(empty, Reason(WAITS_FOR_OTHERS, f"it begins when every slot of {unfinished} is done"))
    return _beyond(fleet, work, holds, taken, empty)


def _beyond(
    fleet: Fleet, work: Workload, holds: Holds, taken: set[Slot], empty: Sequence[Slot]
) -> Mapping[Slot, Reason]:
    """Return the empty slots of an array for which there is no room beside its live ones."""
    terms = work.array
    if terms is None:
        return {}
    is_proven = array_proof.has_proved_itself(fleet, work, holds)
    held = live_slots.held(work, holds)
    live = taken - live_slots.set_aside(fleet, work, held) if is_proven else taken | held
    most = most_live(fleet, work, terms)
    room, reason = most - len(live), _waits(work, most)
    if not is_proven:
        # What went on over a person's resume says nothing about the command by now.
        older = live & array_proof.before_doubt(fleet, work)
        room, reason = min(room, FIRST - len(live - older)), _unproven(work, min(most, FIRST), len(older))
    return dict.fromkeys(terms.ordered(empty)[max(room, 0) :], reason)


def _is_finished(work: Workload | None, holds: Holds) -> bool:
    """Return whether every slot of a workload is done; a parked one is not."""
    if work is None or not work.slots:
        return False
    names = {target.name for word, target in holds if word is Word.DONE and target.workload == work.name}
    return work.name in names or all(str(place) in names for place in work.places)


def most_live(fleet: Fleet, work: Workload, terms: ArrayTerms) -> int:
    """Return the most slots of an array that has proved itself that may be live now, leaving aside budgets.

    A budget alone bounds them only once the cost of a task is known.
    """
    is_cost_known = terms.at_once is not None or task_reserve.cost_of_a_task(fleet, work) is not None
    return terms.at_once or (work.slots if is_cost_known else DEFAULT_AT_ONCE)


def _waits(work: Workload, most: int) -> Reason:
    others = "no other slot" if most == 1 else f"fewer than {most} slots"
    return Reason(WAITS, f"it begins when {others} of {work.name} {'is' if most == 1 else 'are'} live")


def _unproven(work: Workload, most: int, older: int) -> Reason:
    """Return why a slot waits for a proof; `older` slots went on over a person's resume."""
    proven_after = span_text.of(array_proof.PROVEN_AFTER)
    proof = f"a slot of {work.name} is done or its container has run for {proven_after}"
    beside = f" beside the {older} from before its resume" if older else ""
    return Reason(UNPROVEN, f"until {proof}, at most {most} are live{beside}")
