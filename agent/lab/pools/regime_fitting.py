"""Regimes of capacity fitted to recorded traces, and how well they predict other data.

Expectation and maximisation over days of a pool: each day is of one regime, whose four hazards are its events over its
hours. The fit is judged by a belief's prediction of each next look, from a first look on, as in use.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agent.decide.deadline import regimes
from agent.decide.deadline.regimes import STATES, UP, Array, Regimes
from agent.lab.deadline.hazard_fitting import Sight
from agent.lab.traces import trace_files

COUNT, YOUNG_HOURS, TURN_HOURS = 4, 0.5, 24.0
"""Of three to six regimes and of half an hour to two, these predict later days and other clouds best for their size."""
SCORED_HOURS = 72.0
"""The time after which a judged belief begins again, because a job has no longer history."""
STARTS, ROUNDS = 8, 200
_EVENTS = 1.0
"""The prior of a regime, as a number of events at the rate of all days."""
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predictions of beliefs: log-likelihood per pool and day, events seen and expected by state of a spell."""

    per_day: float
    seen: tuple[int, ...]
    expected: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Regimes, their fit to their own pools, and their prediction of later halves.

    `alone` is `later` of one regime fitted to the same earlier halves.
    """

    known: Regimes
    pools: int
    within: Prediction
    later: Prediction
    alone: Prediction


def fitted(sights: Sequence[Sight], count: int = COUNT) -> Fitted:
    """Return the regimes of these pools with how well they fit.

    Raises:
        ValueError: nothing changed in these pools or in their earlier halves.
    """
    earlier, later = halves(sights)
    known = fit(sights, count)
    return Fitted(
        known,
        len(sights),
        judged(known, sights),
        judged(fit(earlier, count), later),
        judged(fit(earlier, 1), later),
    )


def sights(folders: Iterable[Path], instances: int = 1) -> list[Sight]:
    """Return the pools of these folders. Capacity means `instances` at once, or the most that a folder ever shows.

    Raises:
        ConfigError: a file is no trace.
    """
    found = []
    for folder in folders:
        read = trace_files.folder(folder)
        enough = min(instances, max(int(trace.available.max()) for trace in read))
        found += [Sight(trace.available >= max(enough, 1), trace.gap_seconds / 3600) for trace in read]
    return found


def fit(sights: Sequence[Sight], count: int = COUNT) -> Regimes:
    """Return the regimes of these pools, the one with most capacity first.

    Raises:
        ValueError: nothing changed in these pools, so there is nothing to fit.
    """
    counted = [_by_day(sight) for sight in sights]
    events, hours = (np.vstack([pair[side] for pair in counted]) for side in (0, 1))
    if not events.sum():
        raise ValueError("no change of capacity in these traces: there are no regimes to fit")
    _, shares, rates = max((_maximised(events, hours, count, seed) for seed in range(STARTS)), key=lambda each: each[0])
    there = rates[:, UP + 1] / (rates[:, UP + 1] + rates[:, -1])
    best = np.argsort(there)
    hazards = tuple((row[0], row[1], row[2], row[3]) for row in map(_rounded, rates[best]))
    return Regimes(hazards, _rounded(shares[best]), YOUNG_HOURS, TURN_HOURS)


def judged(known: Regimes, sights: Sequence[Sight]) -> Prediction:
    """Return how well beliefs of these regimes predict these pools."""
    likely, days = 0.0, 0.0
    seen, expected = np.zeros(STATES, dtype=int), np.zeros(STATES)
    for sight in sights:
        length = max(int(SCORED_HOURS / sight.gap_hours), 2)
        for first in range(0, len(sight.is_up) - 1, length):
            looks = sight.is_up[first : first + length].tolist()
            likely += _followed(known, looks, sight.gap_hours, seen, expected)
            days += (len(looks) - 1) * sight.gap_hours / 24.0
    return Prediction(likely / days, tuple(seen.tolist()), tuple(expected.tolist()))


def halves(sights: Sequence[Sight]) -> tuple[list[Sight], list[Sight]]:
    """Return the earlier and the later half of each pool."""
    middles = [len(sight.is_up) // 2 for sight in sights]
    pairs = list(zip(sights, middles, strict=True))
    return (
        [Sight(sight.is_up[:middle], sight.gap_hours) for sight, middle in pairs],
        [Sight(sight.is_up[middle:], sight.gap_hours) for sight, middle in pairs],
    )


def _followed(known: Regimes, looks: Sequence[bool], gap: float, seen: Array, expected: Array) -> float:
    """Return the log-likelihood of these looks, and count ends of spells by state."""
    belief, total = regimes.first(known, is_up=looks[0]), 0.0
    for is_up in looks[1:]:
        state = belief.state(known)
        ends = float(belief.shares @ known.chances(state, gap))
        has_ended = is_up is not belief.is_up
        expected[state] += ends
        seen[state] += has_ended
        total += float(np.log(ends if has_ended else 1.0 - ends))
        belief = regimes.observe(known, belief, is_up=is_up, hours=gap)
    return total


def _by_day(sight: Sight) -> tuple[Array, Array]:
    """Return events and hours watched, (days, states), of days that were watched for at least a quarter."""
    is_up, gap = sight.is_up, sight.gap_hours
    has_ended = is_up[1:] != is_up[:-1]
    ticks = np.arange(len(has_ended))
    begun = np.maximum.accumulate(np.where(np.concatenate(([False], has_ended[:-1])), ticks, 0))
    ages = (ticks - begun) * gap + np.where(begun == 0, regimes.FIRST_AGE, 0.0)
    states = np.where(is_up[:-1], regimes.UP, regimes.DOWN) + (ages >= YOUNG_HOURS)
    days = ticks // max(round(TURN_HOURS / gap), 1)
    shape = (int(days[-1]) + 1 if len(days) else 0, STATES)
    events, hours = np.zeros(shape), np.zeros(shape)
    np.add.at(events, (days, states), has_ended)
    np.add.at(hours, (days, states), gap)
    watched = hours.sum(axis=1) > TURN_HOURS / 4
    return events[watched], hours[watched]


def _maximised(events: Array, hours: Array, count: int, seed: int) -> tuple[float, Array, Array]:
    """Return the log-likelihood, shares (regimes,) and hazards (regimes, states) from one random start."""
    common = (events.sum(axis=0) + _EVENTS / 2) / (hours.sum(axis=0) + _EVENTS / 2)
    rates = common * np.exp(np.random.default_rng(seed).normal(0.0, 1.0, (count, STATES)))
    shares, likely = np.full(count, 1.0 / count), 0.0
    for _ in range(ROUNDS):
        odds = events @ np.log(rates).T - hours @ rates.T + np.log(shares)
        most = odds.max(axis=1, keepdims=True)
        weights = np.exp(odds - most)
        sums = weights.sum(axis=1, keepdims=True)
        weights, likely = weights / sums, float((np.log(sums) + most).sum())
        shares = (weights.sum(axis=0) + 1.0) / (len(weights) + count)
        rates = (weights.T @ events + _EVENTS) / (weights.T @ hours + _EVENTS / common)
    return likely, shares, rates


def _rounded(values: Array) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
