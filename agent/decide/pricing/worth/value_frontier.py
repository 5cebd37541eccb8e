"""The frontier of useful hours against dollars: the ways that some value of an hour makes the best, and no other way.

Theory: whoever earns `value` x hours less dollars takes a vertex of the lower convex hull of all ways, the empty slot
among them. The slope of each edge is the value from which the next vertex is better (Boyd & Vandenberghe, Convex
Optimization, section 4.7.4).

Invariants:
1. Hours and dollars rise along the frontier, and each further hour costs more than the last.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent.decide.pricing.worth import net_value
from agent.decide.strategy import Candidate
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour

HOURS_A_DAY = 24.0


@dataclass(frozen=True, slots=True)
class Way:
    """A way to spend a day."""

    name: str
    hours: float
    """The useful hours of the day, at full speed."""
    dollars: float
    """The dollars of the day."""


@dataclass(frozen=True, slots=True)
class Step:
    """A way of the frontier."""

    way: Way
    least_value: float
    """The value of an hour, in dollars, from which the way is the best."""
    is_set: bool = False
    """Whether it is the best way at the workload's own value."""


def of_ways(ways: Iterable[Way], value: UsdPerHour | None) -> tuple[Step, ...]:
    """Return the frontier of these ways, without the empty slot; the step that is best at `value` is set.

    Without a value the first step is set: the cheapest useful hour.
    """
    steps = list(_hull(sorted(ways, key=lambda way: (way.hours, way.dollars, way.name))))
    worth = None if value is None else value.dollars
    fitting = [place for place, (_, least) in enumerate(steps) if worth is not None and least <= worth]
    chosen = (fitting[-1] if fitting else -1) if worth is not None else 0
    return tuple(Step(way, least, place == chosen) for place, (way, least) in enumerate(steps))


def _hull(ways: Sequence[Way]) -> Iterator[tuple[Way, float]]:
    """Yield the vertices of the lower convex hull from the empty slot on, each with the slope of the edge to it."""
    hours = dollars = 0.0
    left = [way for way in ways if way.hours > 0]
    while left:
        slope, best = min(
            (((way.dollars - dollars) / (way.hours - hours), -way.hours) for way in left), default=(0.0, 0.0)
        )
        way = next(each for each in left if each.hours == -best)
        yield way, max(slope, 0.0)
        hours, dollars = way.hours, way.dollars
        left = [each for each in left if each.hours > hours]


def of_candidates(candidates: Iterable[Candidate], value: UsdPerHour | None, fastest: float) -> tuple[Step, ...]:
    """Return the frontier of these candidates, each for a day of stays like its first one."""
    return of_ways((_way(each, fastest) for each in candidates), value)


def _way(candidate: Candidate, fastest: float) -> Way:
    offer, stay = candidate.offer, candidate.reckoning
    tenure = "bid" if candidate.way.tenure is Tenure.INTERRUPTIBLE else "on demand"
    name = f"{offer.gpus}x {offer.gpu} on {offer.host_id} at {candidate.way.rate}, {tenure}"
    days = HOURS_A_DAY / net_value.time(stay)
    return Way(name, stay.useful_hours * net_value.speed(stay, fastest) * days, net_value.paid(stay) * days)


def as_json(step: Step) -> dict[str, Any]:
    """Return a step as plain JSON values."""
    return {
        "way": step.way.name,
        "useful_hours_per_day": round(step.way.hours, 4),
        "dollars_per_day": round(step.way.dollars, 6),
        "least_value_dollars_per_hour": round(step.least_value, 6),
        "useful_hours_per_next_dollar": round(1.0 / step.least_value, 4) if step.least_value > 0 else None,
        "is_set": step.is_set,
    }
