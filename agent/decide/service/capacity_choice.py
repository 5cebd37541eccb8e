"""The capacity for a service's slots so that enough are warm: the places, the spare slots, and those on demand.

Each way costs its prices plus the expected hours with too few warm slots. A loss of a place without spare slots leaves
too few until a replacement is warm. A spare slot is held while it saves more than its price, which is a newsvendor's
choice made again at every look. On-demand slots, and holding nothing at all, are chosen in the same way.

Each place has two rates of losses. The rate over the next hours decides whether to be there rather than on demand,
since a lease becomes safer with its age. The rate now decides about an extra slot.

Invariants:
1. The choice depends only on the places and the terms. Equal ones give equal choices.
2. No place gets more than it has room for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
MOST_PLACES = 6
"""The most places that are considered together, best first: more do not change the choice of a few slots."""
TOGETHER = 0.3
"""The chance that a loss takes another place of its kin with it. In recorded availability a loss took a second zone of
its region in 0.31 (AWS 2022), 0.24 (AWS 2023) and 0.17 (H100s at GCP, 2025) of the cases. Zones of other regions were
lost no more often than at other times."""
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Place:
    """A pool or host where interruptible slots may run."""

    price: float
    """Dollars an hour of a slot."""
    hazard: float
    """The expected losses per hour now."""
    outlook: float
    """The mean of the expected losses per hour over the next hours, if the place is kept."""
    held: int
    """The slots that run there already."""
    room: int
    """The most slots there."""
    kin: str = ""
    """Its region or market. Places of one kin are sometimes lost together; others only by chance."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of the choice, and its prices."""

    slots: int
    """The slots that must be warm."""
    on_demand_price: float
    """Dollars an hour of a slot on demand."""
    short_worth: float
    """The cost of an hour with fewer warm slots, in dollars."""
    gap_hours: float
    """The time from a loss until a replacement is warm."""
    stay_hours: float = 0.5
    """The time within which a start must pay for itself."""
    together: float = TOGETHER
    """The chance that a loss takes another place of its kin with it."""
    most_extra: int = 3
    """The most spare slots."""
    on_demand_held: int = 0
    """The slots that run on demand already."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen slots."""

    spots: tuple[int, ...]
    """The interruptible slots at each place, in the order of the places."""
    on_demand: int
    """The slots on demand."""
    paid: float
    """Dollars an hour of all slots."""
    short: float
    """The expected share of the time with too few warm slots."""


def choose(places: Sequence[Place], terms: Terms) -> Choice:
    """Return the cheapest way to run the slots, with the cost of hours with too few and of starts."""
    ranked = _apart(places, sorted(range(len(places)), key=lambda index: (_alone(places[index], terms), index)))
    tried = [places[index] for index in ranked]
    spots, on_demand = _ways(tried, terms)
    ahead = _cost(tried, spots, on_demand, np.array([each.outlook for each in tried]), terms)
    is_plain = spots.sum(axis=1) + on_demand == terms.slots
    tenure = on_demand[_least(np.where(is_plain, ahead.total, np.inf))]
    now = _cost(tried, spots, on_demand, np.array([each.hazard for each in tried]), terms)
    found = _least(np.where(on_demand == tenure, now.total, np.inf))
    counts = [0] * len(places)
    for index, count in zip(ranked, spots[found].tolist(), strict=True):
        counts[index] = count
    return Choice(tuple(counts), int(on_demand[found]), float(now.paid[found]), float(now.short[found]))


def cover(missing: int, terms: Terms) -> int:
    """Return how many of `missing` slots, which cannot run elsewhere, run on demand: all, or none if too expensive."""
    return missing if missing * terms.on_demand_price <= terms.short_worth * (1 + _TIE) else 0


def _alone(place: Place, terms: Terms) -> float:
    return terms.slots * place.price + terms.short_worth * terms.gap_hours * place.outlook


def _apart(places: Sequence[Place], ranked: Sequence[int]) -> list[int]:
    """Return the best places, and the best place of each kin that is not among them."""
    best = list(ranked[:MOST_PLACES])
    firsts = {places[index].kin: index for index in reversed(ranked)}
    more = sorted(set(firsts.values()) - set(best), key=ranked.index)
    return best + more[:MOST_PLACES]


def _least(costs: Floats) -> int:
    """Return the first of the nearly equal least costs, so that rounding decides nothing."""
    return int(np.flatnonzero(costs <= costs.min() * (1 + _TIE) + _TIE)[0])


def _ways(places: Sequence[Place], terms: Terms) -> tuple[Counts, Counts]:
    """Return the possible ways, the present one first: spots (ways, places) and on demand (ways,)."""
    held = np.array([[place.held for place in places]], dtype=np.int64).reshape(1, len(places))
    spots, on_demand = _patterns(terms.slots, terms.most_extra, min(len(places), MOST_PLACES))
    spots, on_demand = _spread(spots, on_demand, places)
    lacking = np.array([max(terms.slots - int(held.sum()), 0)])
    rooms = np.array([place.room for place in places], dtype=np.int64)
    filled = _filled(rooms, terms)
    spots, on_demand = np.vstack([held, filled[0], spots]), np.concatenate([lacking, filled[1], on_demand])
    # The first way is the present one, which needs no room.
    fits = [0, *(1 + np.flatnonzero((spots[1:] <= rooms).all(axis=1)))]
    return spots[fits], on_demand[fits]


def _filled(rooms: Counts, terms: Terms) -> tuple[Counts, Counts]:
    """Return the ways that fill the best place, then the next."""
    totals = np.arange(terms.slots + terms.most_extra + 1)
    before = np.concatenate([[0], np.cumsum(rooms)[:-1]])
    spots = np.clip(totals[:, None] - before, 0, rooms)
    is_whole = spots.sum(axis=1) == totals
    return spots[is_whole], np.maximum(terms.slots - totals, 0)[is_whole]


def _spread(spots: Counts, on_demand: Counts, places: Sequence[Place]) -> tuple[Counts, Counts]:
    """Return the patterns over the places in their order, and again with the best of each kin first."""
    width = spots.shape[1]
    kins = [each.kin for each in places]
    turns = [(kins[:index].count(kin), index) for index, kin in enumerate(kins)]
    orders = dict.fromkeys((tuple(range(width)), tuple(index for _, index in sorted(turns)[:width])))
    laid = np.zeros((len(orders), len(spots), len(places)), dtype=np.int64)
    for place, order in enumerate(orders):
        laid[place][:, list(order)] = spots
    return np.concatenate(laid), np.tile(on_demand, len(orders))


@lru_cache(maxsize=64)
def _patterns(slots: int, most_extra: int, places: int) -> tuple[Counts, Counts]:
    """Return the ways that spread slots evenly over the first places, with missing ones on demand, or with spares."""
    rows, on_demand = [], []
    for total in range(1, slots + most_extra + 1):
        for used in range(1, min(places, total) + 1):
            shared, more = divmod(total, used)
            rows.append([shared + (place < more) if place < used else 0 for place in range(places)])
            on_demand.append(max(slots - total, 0))
    return np.array(rows, dtype=np.int64).reshape(len(rows), places), np.array(on_demand, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Cost:
    """For each way: $/h paid, share of time with too few, and dollars an hour with everything; all (ways,)."""

    paid: Floats
    short: Floats
    total: Floats


def _cost(places: Sequence[Place], spots: Counts, on_demand: Counts, hazards: Floats, terms: Terms) -> _Cost:
    prices = np.array([place.price for place in places])
    held = np.array([place.held for place in places], dtype=np.int64)
    above = spots.sum(axis=1) + on_demand - terms.slots
    paid = spots @ prices + on_demand * terms.on_demand_price
    starting = np.maximum(spots - held, 0) @ prices
    starting += np.maximum(on_demand - terms.on_demand_held, 0) * terms.on_demand_price
    is_borne = spots <= above[:, None]
    is_used = spots > 0
    borne = is_borne & is_used
    losses = (~is_borne) @ hazards
    # A second loss within the gap of a first one is by chance, or because the two come together.
    by_chance = (borne @ hazards) * terms.gap_hours
    has_kin = is_used @ _kin(places) > is_used
    also = np.minimum(terms.together * has_kin + by_chance[:, None], 1.0)
    losses = losses + (borne * also) @ hazards
    short = np.where(above < 0, 1.0, np.minimum(losses * terms.gap_hours, 1.0))
    total = paid + starting * (terms.gap_hours / terms.stay_hours) + terms.short_worth * short
    return _Cost(paid, short, total)


def _kin(places: Sequence[Place]) -> Counts:
    """Return for each pair of places 1 if they are of one kin, else 0; (places, places)."""
    alike = [[one.kin == other.kin for other in places] for one in places]
    return np.array(alike, dtype=np.int64).reshape(len(places), len(places))
