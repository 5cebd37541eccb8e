"""The number of slots that a demand wants now.

Invariants:
1. It grows at once. It shrinks only if every answer of `shrink_after` wanted fewer, with no gap between them, and the
   last question was answered too. Silence is unknown and shrinks nothing, also after a restart.
2. Before the first answer `least` slots are wanted, and every live slot stays.
3. Whatever is answered, at least `least` and at most all slots of the workload are wanted.
4. A slot that is held alone or over its lease's `max_running`, with its lease stopped, serves nobody: another one
   begins in its place.
"""

import math
from dataclasses import dataclass

from agent.decide.arrays import live_slots
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand, DemandReport
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted number of slots, and whether live slots beyond it may go."""

    slots: int
    may_shrink: bool
    sentence: str
    live: frozenset[Slot]
    """The slots at which something works, or may."""
    taken: frozenset[Slot]
    """Those and the slots that wait for a person alone: nothing begins there."""


def wanted(fleet: Fleet, work: Workload) -> Wanted | None:
    """Return the wanted slots of a workload; None for a workload without demand."""
    terms = work.demand
    if terms is None:
        return None
    taken = frozenset(live_slots.of(fleet, work))
    live = taken - live_slots.set_aside(fleet, work, live_slots.held(work, hold.in_force(fleet.holds, fleet.now)))
    hand = fleet.hand_demands.get(work.name)
    if hand is not None and fleet.now < hand.until:
        slots = min(hand.slots, work.slots)
        said = f"wanted {slots} by `gpubid demand` until {hand.until:%Y-%m-%d %H:%M} UTC"
        return Wanted(slots, may_shrink=True, sentence=said, live=live, taken=taken)
    report = fleet.demand_reports.get(work.name)
    if report is None or report.read_at is None:
        said = f"its demand has not been answered yet: {terms.least} wanted, and what is live stays"
        return Wanted(max(terms.least, len(live)), may_shrink=False, sentence=said, live=live, taken=taken)
    slots = _slots(terms, report.most_tasks, work.slots)
    is_steady = report.since is not None and report.read_at - report.since >= terms.shrink_after
    may_shrink = is_steady and not report.trouble
    slots = slots if may_shrink else max(slots, len(live))
    return Wanted(slots, may_shrink, _said(terms, report, slots), live, taken)


def _slots(terms: Demand, tasks: int, most: int) -> int:
    return min(max(math.ceil(tasks / terms.per_slot), terms.least), most)


def _said(terms: Demand, report: DemandReport, slots: int) -> str:
    each = f", {terms.per_slot} a slot" if terms.per_slot > 1 else ""
    said = f"wanted {slots}: {report.tasks} task(s) waiting or running{each}"
    if report.most_tasks > report.tasks:
        said += f", and up to {report.most_tasks} within {span_text.of(terms.shrink_after)}"
    since = f" {report.trouble_since:%H:%M} UTC" if report.trouble_since is not None else ""
    return f"{said}; no answer since{since}: {report.trouble}" if report.trouble else said
