"""The markets that a workload uses only once a slot has been down for a while, and whether that time has come.

They are closed again as soon as every wanted slot is up: a later loss is first answered by the other markets.

Invariants:
1. A slot that is meant to be empty opens nothing: under a hold, outside its window, or not wanted by an array or a
   demand. Its time begins when it is wanted again. So many slots as a strategy leaves spare open nothing either.
2. A lease that its slot no longer waits for does not count as the slot's, but the slot is down at most since its end.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from agent.decide.demand import demand_window, waiting_slots
from agent.decide.operators import operator_holds
from agent.decide.run_times import run_time_verdict, run_windows
from agent.decide.strategy import Tuned
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.hold import EVERYTHING, Word
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload, WorkloadKind

_UP = frozenset({LeaseState.STARTING, LeaseState.RUNNING, LeaseState.MISSING})


def with_warm_slots(fleet: Fleet, tuned: Mapping[str, Tuned]) -> Fleet:
    """Return a fleet that knows how many slots of its services with fallback markets are kept warm, of those wanted.

    `tuned` are the strategies by name.
    """
    found = {}
    for work in fleet.workloads:
        if work.fallback.markets and work.kind is WorkloadKind.SERVICE and work.strategy in tuned:
            seen = demand_window.seen_by_strategy(fleet, work)
            found[work.name] = tuned[work.strategy].params.warm_slots(seen.slots)
    kept = {name: count for name, count in found.items() if count}
    return fleet if kept == fleet.warm_slots else msgspec.structs.replace(fleet, warm_slots=kept)


def closed(fleet: Fleet, work: Workload) -> frozenset[str]:
    """Return the fallback markets in which nothing may be rented yet."""
    opens = opens_at(fleet, work)
    is_open = opens is not None and opens <= fleet.now
    return frozenset() if is_open else frozenset(work.fallback.markets)


def opens_at(fleet: Fleet, work: Workload) -> datetime | None:
    """Return when the fallback markets open, or opened; None while every wanted slot is up, or without such markets."""
    if not work.fallback.markets:
        return None
    idle = _unwanted(fleet, work)
    wanted = [place for place in work.places if place not in idle]
    down = sorted(since for place in wanted if (since := _down_since(fleet, work, place)) is not None)
    # A strategy leaves so many slots empty where they do not pay: those that have been down for longest.
    needed = down[max(len(wanted) - fleet.warm_slots.get(work.name, len(wanted)), 0) :]
    return needed[0] + work.fallback.after if needed else None


def why_closed(fleet: Fleet, work: Workload) -> Iterator[str]:
    """Yield a sentence for each fallback market in which nothing may be rented yet, with when it opens."""
    opens, after = opens_at(fleet, work), span_text.of(work.fallback.after)
    day = "" if opens is None or opens.date() == fleet.now.date() else f"{opens:%Y-%m-%d} "
    when = "" if opens is None else f", which is at {day}{opens:%H:%M} UTC"
    for name in sorted(closed(fleet, work)):
        yield f"{name} is a fallback: nothing is rented there until a slot has been down for {after}{when}"


def unwanted_at(fleet: Fleet) -> Mapping[Slot, datetime]:
    """Return when each slot of a workload with fallback markets was last meant to be empty, as far as this run saw."""
    works = [work for work in fleet.workloads if work.fallback.markets]
    known = {place for work in works for place in work.places}
    before = {place: at for place, at in fleet.unwanted_at.items() if place in known}
    return before | {place: fleet.now for work in works for place in _unwanted(fleet, work)}


def _unwanted(fleet: Fleet, work: Workload) -> frozenset[Slot]:
    """Return the slots of a workload for which nothing is to be rented now, whatever is offered."""
    holds = hold.in_force(fleet.holds, fleet.now)
    if (Word.KILL, EVERYTHING) in holds:
        return frozenset(work.places)
    found = {*waiting_slots.of(fleet, work, holds), *demand_window.leaving(fleet, work)}
    for place in work.places:
        over = run_time_verdict.why_idle(fleet, place)
        # A doubted clock says nothing about the slot.
        is_over = over is not None and over.code != run_windows.DOUBTED
        if is_over or operator_holds.why_idle(fleet, place, holds) is not None:
            found.add(place)
    return frozenset(found)


def _down_since(fleet: Fleet, work: Workload, place: Slot) -> datetime | None:
    """Return since when no lease of a slot runs or starts; None if one does."""
    leases = fleet.leases_of(place)
    if any(lease.state in _UP for lease in leases):
        return None
    ended = [lease.state_since for lease in leases]
    ended += [fleet.vacated[place]] if place in fleet.vacated else []
    known = fleet.known_since.get(str(place)) or fleet.known_since.get(work.name, fleet.started_at)
    since = max(ended, default=known)
    return max([since, *_wanted_since(fleet, work, place)])


def _wanted_since(fleet: Fleet, work: Workload, place: Slot) -> Iterator[datetime]:
    """Yield the instants before which a slot was meant to be empty."""
    window = fleet.windows.get(work.name) if work.windows else None
    known = (window.since if window is not None else None, work.not_before, fleet.unwanted_at.get(place))
    yield from (at for at in known if at is not None)
