"""The rows of the page's slots: slots with their leases, empty slots that share a row, and leases without a slot.

Only the rows of one screen are computed. Of an array and of a workload with demand, empty slots with one reason share
a row, and so do the done ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.decide.operators import operator_holds
from agent.domain.record import hold
from agent.domain.record.hold import Word
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload
from agent.ledger.reader import Reader
from agent.web.feed import price_trail, slot_history
from agent.web.feed.fleet_document import Sources
from agent.web.feed.price_trail import Trail
from agent.web.page import measured_words, shared_lines
from agent.web.page.chart import Course
from agent.web.reading import verb_json
from agent.web.reading.slot_leases import SlotLeases


@dataclass(frozen=True, slots=True)
class SharedRow:
    """Empty slots of one workload that are empty for one reason."""

    slots: tuple[Slot, ...]
    why: str
    is_done: bool


Row = Slot | SharedRow | Lease


async def rows(sight: Sources, having: SlotLeases, reader: Reader) -> list[Row]:
    """Return a row for each slot, or for several empty ones, workload by workload; leases without a slot come last."""
    found: list[Row] = []
    empty = {
        work.name: [place for place in work.places if place not in having.by_slot]
        for work in sight.rules.workloads
        if is_of_many(work)
    }
    # Each slot's reason is needed to share a row: the last decisions of all slots are one question.
    decided = {each.slot: (each,) for each in await reader.decisions()} if any(empty.values()) else {}
    holds = hold.in_force(sight.known.holds, sight.now)
    for work in sight.rules.workloads:
        alone = [place for place in work.places if work.name not in empty or place in having.by_slot]
        whys = [(place, *_why_empty(place, holds, decided)) for place in empty.get(work.name, ())]
        found += [*alone, *_shared(whys)]
    return [*found, *having.loose]


def is_of_many(work: Workload) -> bool:
    """Return whether empty slots of a workload share a row: an array's, and those of a workload with a demand."""
    return work.array is not None or work.demand is not None


def _why_empty(place: Slot, holds: hold.Holds, decided: Mapping[Slot, Any]) -> tuple[str, bool]:
    """Return why a slot is empty, without a reason of its own if it is done, and whether it is done."""
    if operator_holds.find(holds, (Word.DONE,), operator_holds.of_slot(place)) is not None:
        return "", True
    return verb_json.slot(place, holds, decided.get(place, ()), ())["why"], False


def _shared(whys: Sequence[tuple[Slot, str, bool]]) -> list[Slot | SharedRow]:
    """Return the rows of empty slots: one for each reason, the done ones last. A slot alone keeps its own row."""
    together: dict[tuple[bool, str], list[Slot]] = {}
    for place, why, is_done in whys:
        together.setdefault((is_done, why), []).append(place)
    ordered = sorted(together.items(), key=lambda each: each[0][0])
    return [
        places[0] if len(places) == 1 else SharedRow(tuple(places), why, is_done) for (is_done, why), places in ordered
    ]


async def shown(found: Sequence[Row], having: SlotLeases, sight: Sources, reader: Reader) -> list[dict[str, Any]]:
    """Return the content of the rows of one screen, in their order."""
    places = [row for row in found if isinstance(row, Slot)]
    leases = [row for row in found if isinstance(row, Lease)]
    mine = [lease for place in places for lease in having.by_slot.get(place, ())]
    courses = await _courses([*mine, *leases], reader, sight.now)
    since = sight.now - price_trail.SPAN
    past = await slot_history.histories(places, sight.known.leases, reader, since, sight.now)
    decided = await reader.decisions(places)
    holds = hold.in_force(sight.known.holds, sight.now)
    answer = []
    for row in found:
        if isinstance(row, SharedRow):
            answer.append(_of_shared(row))
        elif isinstance(row, Slot):
            own = having.by_slot.get(row, ())
            told = verb_json.slot(row, holds, decided, own) | {"past": past[row], "is_loose": False, "is_shared": False}
            answer.append(told | {"leases": [_lease(each, courses, sight) for each in own]})
        else:
            told = {"slot": str(row.slot), "state": row.state.value, "why": "", "is_loose": True, "is_shared": False}
            answer.append(told | {"leases": [_lease(row, courses, sight)]})
    return answer


def _of_shared(row: SharedRow) -> dict[str, Any]:
    return {
        "slot": shared_lines.named(row.slots[0], len(row.slots)),
        "state": f"{len(row.slots)} {'done' if row.is_done else 'empty'}",
        "why": row.why,
        "is_loose": False,
        "is_shared": True,
        "leases": [],
    }


def _lease(lease: Lease, courses: Mapping[str, Course], sight: Sources) -> dict[str, Any]:
    measured = measured_words.words(sight.known.guard_figures.get(lease.lease_id), sight.now)
    return verb_json.lease(lease) | {"course": courses[lease.lease_id], "measured": measured}


async def _courses(leases: Sequence[Lease], reader: Reader, now: datetime) -> Mapping[str, Course]:
    """Return the prices of each lease over the last day."""
    start = now - price_trail.SPAN
    trails = await price_trail.trails(leases, reader, start)
    return {lease.lease_id: course(trails[lease.lease_id], max(start, lease.opened_at), now, now) for lease in leases}


def course(trail: Trail, start: datetime, end: datetime, now: datetime) -> Course:
    """Return the prices of a lease from `start` to `end` as a chart draws them."""
    return Course(trail.prices, trail.losses, start, end, now.year)
