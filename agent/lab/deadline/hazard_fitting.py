"""Hazards fitted to recorded traces: by bins of age, and how differently pools and days behave.

Expectation and maximisation over stretches of a pool: each stretch is of one of the models, whose factors scale hazards
that all share. A spell whose beginning was not seen has no age and is left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from agent.decide.deadline.hazards import Hazards
from agent.lab.traces import survival

Array = npt.NDArray[np.float64]

EDGES = (0.0, 1 / 6, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Ages in hours at which bins begin. Hazards fall about as one over age, so each bin is twice as wide as the last."""
FACTORS = (0.4, 0.8, 1.6, 3.2)
STRETCH_HOURS = 48.0
"""The length of a stretch of a pool that counts as one model. It is also the half-life of evidence."""
ROUNDS = 60
_HALF = 0.5
"""The prior of a bin, in events and in hours watched: an event that was never seen is not impossible."""
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Sight:
    """A pool watched tick by tick."""

    is_up: npt.NDArray[np.bool_]
    gap_hours: float


@dataclass(frozen=True, slots=True)
class _Counts:
    """Events and hours watched, (stretches, bins), of capacity that was there or that was away."""

    events: Array
    hours: Array


def fit(sights: Iterable[Sight], factors: Sequence[float] = FACTORS) -> Hazards:
    """Return the hazards of these pools, with a model for every pair of factors.

    Raises:
        ValueError: nothing was seen from its beginning.
    """
    counted = [counts for sight in sights for counts in _stretches(sight)]
    if not counted:
        raise ValueError("no change of capacity in these traces: there is nothing to fit hazards to")
    there = _Counts(*(np.array([getattr(up, name) for up, _ in counted]) for name in ("events", "hours")))
    away = _Counts(*(np.array([getattr(down, name) for _, down in counted]) for name in ("events", "hours")))
    pairs = np.array(list(product(factors, repeat=2)))
    weights, losses, returns = _maximised(there, away, pairs)
    return Hazards(
        EDGES,
        _rounded(losses),
        _rounded(returns),
        tuple((float(loss), float(back)) for loss, back in pairs),
        _rounded(weights),
        STRETCH_HOURS,
    )


def _maximised(there: _Counts, away: _Counts, pairs: Array) -> tuple[Array, Array, Array]:
    """Return the weights of the models and the hazards they share."""
    count = len(pairs)
    weights = np.full(count, 1 / count)
    losses, returns = _rates(there, np.ones(len(there.events))), _rates(away, np.ones(len(away.events)))
    for _ in range(ROUNDS):
        odds = np.log(weights) + _likelihood(there, losses, pairs[:, 0]) + _likelihood(away, returns, pairs[:, 1])
        shares = np.exp(odds - odds.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        weights = (shares.sum(axis=0) + 1) / (len(shares) + count)
        losses, returns = _rates(there, shares @ pairs[:, 0]), _rates(away, shares @ pairs[:, 1])
    return weights, losses, returns


def _likelihood(counts: _Counts, rates: Array, factors: Array) -> Array:
    """Return the log-likelihood (stretches, models) of Poisson counts, without the terms that all models share."""
    events = counts.events.sum(axis=1)
    return np.outer(events, np.log(factors)) - np.outer(counts.hours @ rates, factors)


def _rates(counts: _Counts, factors: Array) -> Array:
    """Return the rate of each bin when each stretch scales it by its factor."""
    rates: Array = (counts.events.sum(axis=0) + _HALF) / (factors @ counts.hours + _HALF)
    return rates


def _stretches(sight: Sight) -> list[tuple[_Counts, _Counts]]:
    """Return the counts (bins,) of each stretch, where capacity was there and where it was away."""
    gap, ticks = sight.gap_hours, len(sight.is_up)
    per_stretch = max(int(STRETCH_HOURS / gap), 1)
    shape = (2, -(-ticks // per_stretch), len(EDGES))
    events, hours = np.zeros(shape), np.zeros(shape)
    for is_up, begin, end in survival.stretches(sight.is_up):
        ages = np.arange(end - begin) * gap
        bins = np.searchsorted(EDGES, ages + 1e-9, "right") - 1
        places = np.arange(begin, end) // per_stretch
        side = 0 if is_up else 1
        watched = slice(None) if end < ticks else slice(-1)
        np.add.at(hours[side], (places[watched], bins[watched]), gap)
        if end < ticks:
            events[side, places[-1], bins[-1]] += 1
    seen = hours.sum(axis=(0, 2)) > STRETCH_HOURS / 4
    return [
        (_Counts(events[0, place], hours[0, place]), _Counts(events[1, place], hours[1, place]))
        for place in np.flatnonzero(seen)
    ]


def _rounded(values: Array) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
