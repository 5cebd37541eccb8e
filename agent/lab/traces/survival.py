"""The time for which observed capacity stays, or stays away: the Kaplan-Meier estimate over recorded spells.

Source: Kaplan and Meier, Journal of the American Statistical Association 53(282), 1958; the variance is Greenwood's.
A spell whose beginning was not seen is left out. A spell whose end was not seen is censored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Z95 = 1.96


@dataclass(frozen=True, slots=True)
class Spell:
    """Hours that capacity was there or away, and whether its end was seen."""

    hours: float
    has_ended: bool


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """Ages in hours (ages,) and the share of spells that last longer, with a 95 % band (ages,)."""

    ages: Array
    shares: Array
    low: Array
    high: Array
    spells: int


def stretches(is_up: npt.NDArray[np.bool_]) -> Iterator[tuple[bool, int, int]]:
    """Yield (is_up, first tick, tick after the last) of each spell that was seen to begin."""
    edges = [*(np.flatnonzero(np.diff(is_up)) + 1).tolist(), len(is_up)]
    for begin, end in pairwise(edges):
        yield bool(is_up[begin]), begin, end


def spells(is_up: npt.NDArray[np.bool_], gap_hours: float, *, of_capacity: bool) -> list[Spell]:
    """Return the spells of capacity, or of its absence, whose beginning was seen."""
    return [
        Spell((end - begin) * gap_hours, end < len(is_up))
        for is_there, begin, end in stretches(is_up)
        if is_there is of_capacity
    ]


def kaplan_meier(seen: Iterable[Spell]) -> Survival:
    """Return the share of spells that last longer than each age at which a spell ended.

    Raises:
        ValueError: there is no spell.
    """
    spells = list(seen)
    if not spells:
        raise ValueError("no spell to learn from")
    hours = np.array([spell.hours for spell in spells])
    ended = np.array([spell.has_ended for spell in spells])
    ages = np.unique(hours[ended])
    at_risk = np.array([(hours >= age - _ROUNDING).sum() for age in ages], dtype=np.float64)
    deaths = np.array([(np.abs(hours[ended] - age) < _ROUNDING).sum() for age in ages], dtype=np.float64)
    shares = np.cumprod(1 - deaths / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = Z95 * shares * np.sqrt(np.cumsum(deaths / (at_risk * (at_risk - deaths))))
    error = np.nan_to_num(error, posinf=0.0)
    low, high = np.clip(shares - error, 0, 1), np.clip(shares + error, 0, 1)
    return Survival(
        np.append(0.0, ages), np.append(1.0, shares), np.append(1.0, low), np.append(1.0, high), len(spells)
    )


def at(survival: Survival, ages: Sequence[float]) -> Array:
    """Return the shares at other ages. A share is constant until the next step."""
    places = np.searchsorted(survival.ages, np.asarray(ages) + _ROUNDING, "right") - 1
    found: Array = survival.shares[places]
    return found


_ROUNDING = 1e-9
"""The tolerance of equal ages: hours of ticks are sums, so they may differ in the last digit."""
