"""Ours at the availability of a published rule, so that dollars are compared at equal availability.

A day runs at one of two dials drawn by lot, and its figures are the expected values of the draw. Dials and chance are
chosen on other days: on the lower hull of (availability, dollars) over those days, at the availability that the rule
had over the same days. The scored day itself is not used for the choice.

Theory: the least mean cost at a mean availability is a mixture of two dials, each the best at one price of an hour
short (Everett, Generalized Lagrange Multiplier Method, Operations Research 11(3), 1963).

Invariant: the dials of a day are chosen on days that begin in other stretches of four days, of any group. If the record
has only one stretch, they are chosen on the days that do not overlap with the scored day.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent.lab.availability.span import Span
from agent.lab.bench.comparison import Score

OFF = "nothing"
"""The dial without instances: it costs nothing and is never available."""


@dataclass(frozen=True, slots=True)
class Dial:
    """The result of a dial over some days: mean dollars and mean availability."""

    name: str
    dollars: float
    availability: float


@dataclass(frozen=True, slots=True)
class Lot:
    """Two dials, and the chance that a day uses the second."""

    first: str
    second: str
    chance: float


def lot(dials: Sequence[Dial], availability: float) -> Lot:
    """Return the cheapest mixture of two dials that reaches an availability; the most available dial if none does."""
    hull = _hull([Dial(OFF, 0.0, 0.0), *dials])
    for first, second in pairwise(hull):
        if availability <= second.availability:
            share = (availability - first.availability) / (second.availability - first.availability)
            return Lot(first.name, second.name, min(max(share, 0.0), 1.0))
    return Lot(hull[-1].name, hull[-1].name, 1.0)


def single(dials: Sequence[Dial], availability: float) -> Lot:
    """Return the cheapest dial that reaches an availability; the most available one if none does."""
    enough = [dial for dial in dials if dial.availability >= availability]
    most = max(dial.availability for dial in dials)
    best = min(enough or [dial for dial in dials if dial.availability == most], key=lambda each: each.dollars)
    return Lot(best.name, best.name, 1.0)


def _hull(dials: Sequence[Dial]) -> list[Dial]:
    """Return the dials from which no mixture of others is cheaper, the least available first."""
    hull: list[Dial] = []
    for dial in sorted(dials, key=lambda each: (each.availability, each.dollars)):
        if hull and dial.availability <= hull[-1].availability:
            continue
        while len(hull) > 1 and _slope(hull[-2], hull[-1]) >= _slope(hull[-2], dial):
            hull.pop()
        hull.append(dial)
    return hull


def _slope(first: Dial, second: Dial) -> float:
    return (second.dollars - first.dollars) / (second.availability - first.availability)


def others(spans: Sequence[Span], hours: float) -> list[tuple[int, ...]]:
    """Return for each span of `hours` the indices of the spans on which its dial is chosen; none if all overlap."""
    stretches = [each.block for each in spans]
    found = []
    for span, stretch in zip(spans, stretches, strict=True):
        apart = [place for place, each in enumerate(spans) if abs(each.begins_hours - span.begins_hours) >= hours]
        found.append(tuple(place for place in apart if stretches[place] != stretch) or tuple(apart))
    return found


def scores(
    spans: Sequence[Span], hours: float, dials: Mapping[str, Sequence[Score]], theirs: Sequence[Score], target: float
) -> list[Score]:
    """Return each span's score at the availability of `theirs`. `lead` is the gain in availability."""

    def choose(known: Sequence[Dial], fitted_on: tuple[int, ...]) -> Lot:
        return lot(known, _over("", theirs, fitted_on).availability)

    lots = _chosen(spans, hours, dials, choose)
    return [_drawn(lots[place], dials, place, theirs[place], target) for place in range(len(spans))]


def at_target(
    spans: Sequence[Span],
    hours: float,
    dials: Mapping[str, Sequence[Score]],
    worths: Mapping[str, float],
    theirs: Sequence[Score],
    target: float,
) -> list[Score]:
    """Return each span's score at the cheapest dial that reached `target` on other days, with that dial's worth."""
    lots = _chosen(spans, hours, dials, lambda known, _: single(known, target))
    found = []
    for place, each in enumerate(lots):
        drawn = _drawn(each, dials, place, theirs[place], target)
        found.append(Score(drawn.cost, drawn.is_late, {**drawn.figures, "short_worth": worths[each.second]}))
    return found


def _chosen(
    spans: Sequence[Span],
    hours: float,
    dials: Mapping[str, Sequence[Score]],
    choose: Callable[[Sequence[Dial], tuple[int, ...]], Lot],
) -> list[Lot]:
    """Return the lot of each span, chosen on its other days."""
    lots: dict[tuple[int, ...], Lot] = {}
    found = []
    for fitted_on in others(spans, hours):
        if fitted_on not in lots:
            lots[fitted_on] = choose([_over(name, each, fitted_on) for name, each in dials.items()], fitted_on)
        found.append(lots[fitted_on])
    return found


def _over(name: str, scored: Sequence[Score], places: Sequence[int]) -> Dial:
    chosen = [scored[place] for place in places]
    often = sum(each.figures["availability"] for each in chosen)
    return Dial(name, sum(each.cost for each in chosen) / len(chosen), often / len(chosen))


def _drawn(lots: Lot, dials: Mapping[str, Sequence[Score]], place: int, theirs: Score, target: float) -> Score:
    """Return the expected result of the draw."""
    nothing = Score(0.0, figures=dict.fromkeys(theirs.figures, 0.0))
    first, second = (nothing if name == OFF else dials[name][place] for name in (lots.first, lots.second))
    figures = {key: (1 - lots.chance) * first.figures[key] + lots.chance * second.figures[key] for key in first.figures}
    figures["lead"] = figures["availability"] - theirs.figures["availability"]
    cost = (1 - lots.chance) * first.cost + lots.chance * second.cost
    return Score(cost, is_late=figures["availability"] < target, figures=figures)
