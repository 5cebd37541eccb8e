"""Net value: what the useful hours of a stay are worth less what the stay costs, per hour of time.

Theory: one slot rents one stay after another, so by renewal-reward it earns most by the stay with the most net value
per hour of the slot's time, and nothing by a stay that earns less than an empty slot, which is 0. Time includes the
loading and the trouble after a loss (Ross, Introduction to Probability Models, section 7.4). The least cost of a useful
hour is the same choice only while an hour is worth about as much as it costs: the more an hour is worth, the more a
fast card and a calm host count.

Invariants:
1. Figures here are estimates in dollars and hours, never paid sums.
2. Without a stated value nothing changes: candidates keep the order of their cost.
"""

from collections.abc import Iterable, Iterator
from itertools import islice

from agent.decide.pricing.useful_hour import StayCost
from agent.decide.strategy import Candidate, Pricing, View
from agent.domain.money import UsdPerHour

TROUBLE_HOURS = 10 / 60
"""How long an interruption idles a slot: detection, choice, and loading elsewhere. Assumed."""

LOOK_AT = 256
"""The most candidates of one way to compare by net value. The order of cost ends the search sooner."""


def per_hour(stay: StayCost, worth: UsdPerHour, fastest: float) -> float:
    """Return dollars of net value per hour of a stay; `worth` is of a useful hour at full speed."""
    return (worth.dollars * speed(stay, fastest) * stay.useful_hours - paid(stay)) / time(stay)


def speed(stay: StayCost, fastest: float) -> float:
    """Return the work of an hour of a stay, as a share of an hour on the workload's fastest model.

    `fastest` is the usual DLPerf of that model. It is 0 for a workload with fewer than two models: then the share is
    the stay's measured speed. A host above `fastest` does more than an hour's work.
    """
    return stay.dlperf / fastest if fastest > 0 else stay.speed


def time(stay: StayCost) -> float:
    """Return the hours that a stay occupies its slot: with loading, and the trouble after a loss."""
    hours = stay.restore_hours + stay.lost_hours + stay.useful_hours
    return hours + stay.loading_hours + stay.hazard * hours * TROUBLE_HOURS


def paid(stay: StayCost) -> float:
    """Return the dollars that a stay pays. An idle hour costs time, and no dollars here."""
    return stay.dollars - stay.idle_dollars


def of_view(view: View, *ways: Pricing) -> Iterator[Candidate]:
    """Yield a view's candidates, best first: by net value over all ways; by the first way's cost without a value."""
    worth = view.workload.value_per_hour
    if worth is None:
        return view.ranking(ways[0])
    return best_first([view.ranking(way) for way in ways], worth, view.fastest)


def best_first(ranked: Iterable[Iterable[Candidate]], worth: UsdPerHour, fastest: float) -> Iterator[Candidate]:
    """Yield the candidates of several rankings by falling net value, each host once, and none that earns nothing.

    Each ranking has rising costs of useful work. It is read until a candidate costs more than its work is worth.
    """
    found = [
        (per_hour(each.reckoning, worth, fastest), each) for rows in ranked for each in _read(rows, worth, fastest)
    ]
    found.sort(key=lambda one: (-one[0], one[1].offer.offer_id))
    seen = set()
    for net, each in found:
        if net > 0 and each.offer.host not in seen:
            seen.add(each.offer.host)
            yield each


def _read(rows: Iterable[Candidate], worth: UsdPerHour, fastest: float) -> Iterator[Candidate]:
    for each in islice(rows, LOOK_AT):
        yield each
        if fastest > 0 and per_hour(each.reckoning, worth, fastest) <= 0:
            return
