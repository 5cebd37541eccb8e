"""How long a service had enough warm slots: observed at every look, and kept in stretches of some hours.

Invariants:
1. The time between two looks counts with the state at the later look. A state that is not recorded at each look counts
   until one poll before the look that shows another state.
2. Time without a look is unknown: only its last poll counts.
3. Time in which no slot is wanted does not count, nor does the time before enough slots are warm for the first time.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from agent.decide.demand import demand_window, waiting_slots
from agent.decide.operators import operator_holds
from agent.decide.pricing import cooldowns
from agent.decide.run_times import run_time_verdict
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.record.hold import EVERYTHING, Holds, Word
from agent.domain.warm_time import Stretch, WarmTime
from agent.domain.work import usefulness
from agent.domain.work.workload import Workload, WorkloadKind

STRETCH = timedelta(hours=6)
"""The time of one stretch: two weeks of them are a text of two kilobytes in the ledger."""
KEPT = timedelta(days=14)
"""Older time says little about the present market."""
SAME_EVERY = timedelta(minutes=2)
"""A look without a change is recorded at most once in this time."""
UNWATCHED = timedelta(minutes=10)
"""After this long without a look, the time between counts as unknown."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)

NeededSlots = Callable[[Workload], int]
"""Returns how many warm slots a workload's strategy keeps; 0 if it keeps none warm."""


def needed_by(tuned: Mapping[str, Tuned]) -> NeededSlots:
    """Return how many slots the strategy of a workload keeps warm. `tuned` are the strategies by name."""
    return lambda work: tuned[work.strategy].params.warm_slots(work.slots)


def watched(known: Mapping[str, WarmTime], fleet: Fleet, needed: NeededSlots) -> dict[str, WarmTime]:
    """Return the record of each service, by name, after this look; an unchanged one is the same object."""
    found = dict(known)
    holds = cooldowns.in_force(fleet).holds
    for work in fleet.workloads:
        if work.kind is not WorkloadKind.SERVICE or not needed(work):
            continue
        after = _looked(known.get(work.name), fleet, work, holds, needed)
        if after is not None:
            found[work.name] = after
    return found


def renamed(known: Mapping[str, WarmTime], workloads: Iterable[Workload]) -> dict[str, WarmTime]:
    """Return the records by name, with that of a workload's old name as its own while it has none."""
    moved = {
        work.name: msgspec.structs.replace(known[work.was], workload=work.name)
        for work in workloads
        if work.was in known and work.name not in known
    }
    return {**known, **moved}


def news(before: Mapping[str, WarmTime], after: Mapping[str, WarmTime]) -> tuple[WarmTime, ...]:
    """Return the records that a look changed, those of `after` that are not the same object in `before`."""
    return tuple(each for name, each in after.items() if before.get(name) is not each)


def followed(known: WarmTime, now: datetime, poll: timedelta, *, is_short: bool) -> WarmTime:
    """Return a record after a look; the same object if the look need not be recorded."""
    passed = now - known.seen_at
    if passed <= timedelta(0) or (is_short is known.is_short and passed < SAME_EVERY):
        return known
    latest = min(passed, poll) if passed > UNWATCHED or is_short is not known.is_short else passed
    stretches = _added(known.stretches, now, latest, is_short=is_short)
    if latest < passed <= UNWATCHED:
        before = _added(known.stretches, now - latest, passed - latest, is_short=known.is_short)
        stretches = _added(before, now, latest, is_short=is_short)
    oldest = _number(now - KEPT)
    kept = tuple(each for each in stretches if each.number > oldest)
    return msgspec.structs.replace(known, seen_at=now, is_short=is_short, stretches=kept)


def _added(stretches: tuple[Stretch, ...], until: datetime, time: timedelta, *, is_short: bool) -> tuple[Stretch, ...]:
    """Return the stretches with the time up to an instant, which belongs to the stretch of that instant."""
    micros, number = time // _MICRO, _number(until)
    last = stretches[-1] if stretches and stretches[-1].number == number else Stretch(number, 0, 0)
    grown = Stretch(number, last.wanted + micros, last.short + micros * is_short)
    return (*(each for each in stretches if each.number != number), grown)


def _number(at: datetime) -> int:
    return (at - _EPOCH) // STRETCH


def _looked(known: WarmTime | None, fleet: Fleet, work: Workload, holds: Holds, needed: NeededSlots) -> WarmTime | None:
    wanted = _wanted(fleet, work, holds, needed)
    is_short = _warm(fleet, work) < wanted
    if known is None:
        return None if is_short or not wanted else WarmTime(work.name, fleet.now)
    if not wanted:
        is_due = fleet.now - known.seen_at >= SAME_EVERY
        return msgspec.structs.replace(known, seen_at=fleet.now) if is_due else known
    return followed(known, fleet.now, fleet.poll, is_short=is_short)


def _wanted(fleet: Fleet, work: Workload, holds: Holds, needed: NeededSlots) -> int:
    """Return how many slots must be warm now: none that a person or the configuration keeps from running."""
    if (Word.KILL, EVERYTHING) in holds:
        return 0
    waiting = waiting_slots.of(fleet, work, holds)
    free = sum(
        place not in waiting
        and operator_holds.why_idle(fleet, place, holds) is None
        and run_time_verdict.why_idle(fleet, place) is None
        for place in work.places
    )
    return min(needed(demand_window.seen_by_strategy(fleet, work)), free)


def _warm(fleet: Fleet, work: Workload) -> int:
    return sum(any(usefulness.is_useful(lease, work) for lease in fleet.leases_of(place)) for place in work.places)
