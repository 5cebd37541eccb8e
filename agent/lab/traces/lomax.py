"""The Lomax law of how long capacity stays or stays away: its chance to end falls with age as kappa / (age + s).

Maximum likelihood with censored spells. A pool that is observed only every `gap` hours shows that a spell ended between
two looks, so the spell counts with the chance of that. Source: Lomax, Journal of the American Statistical Association
49(268), 1954; censoring as in Klein and Moeschberger, Survival Analysis, 2nd ed. 2003, section 3.5.

A law agrees better with the data of its fit than with later data. The distance to the Kaplan-Meier estimate and the
calibration by age are therefore reported for both.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize

from agent.lab.traces import survival
from agent.lab.traces.survival import Array, Spell

Flags = npt.NDArray[np.bool_]
AGES = (0.0, 1 / 6, 0.5, 1.0, 2.0, 4.0, 8.0, 24.0)
"""Edges in hours of a calibration's bins of age. The last bin is open."""
LEAST_ENDED = 5
_FAR = 12.0
"""The bounds of the logarithms of fitted figures."""
KS_5_PERCENT = 1.358
"""Kolmogorov's: times 1 / sqrt(n). With figures fitted to the same spells the true bound is lower; ours is no test."""


@dataclass(frozen=True, slots=True)
class Lomax:
    """Hazard kappa / (age + s), s in hours; `error` is the standard error of kappa at that s."""

    kappa: float
    s: float
    error: float
    log_likelihood: float

    def share(self, ages: Sequence[float] | Array) -> Array:
        """Return the share of spells that last longer than these ages in hours."""
        found: Array = (self.s / (np.asarray(ages, dtype=np.float64) + self.s)) ** self.kappa
        return found


@dataclass(frozen=True, slots=True)
class Bin:
    """Ends seen and expected between two ages in hours. An open bin has `until` None."""

    since: float
    until: float | None
    seen: int
    expected: float


@dataclass(frozen=True, slots=True)
class Goodness:
    """The agreement of spells with a law: the largest distance of survival curves, its bound by chance, and by age."""

    spells: int
    distance: float
    bound: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A law and its data. `memoryless` is the log-likelihood of one constant rate.

    `later` is the agreement of the later half with a law fitted to the earlier half, or None if that has too few ends.
    """

    law: Lomax
    spells: int
    ended: int
    hours: float
    memoryless: float
    within: Goodness
    later: Goodness | None


def fit(spells: Sequence[Spell], gap: float = 0.0) -> Lomax:
    """Return the most likely law of spells that were observed every `gap` hours, or all the time.

    Raises:
        ValueError: fewer than `LEAST_ENDED` spells were seen to end.
    """
    hours, ended = _arrays(spells)
    count = int(ended.sum())
    if count < LEAST_ENDED:
        raise ValueError(f"only {count} spells were seen to end; {LEAST_ENDED} are needed to fit a law")

    def loss(logs: Array) -> float:
        kappa, s = np.exp(np.clip(logs, -_FAR, _FAR))
        return -_likelihood(hours, ended, gap, lambda ages: kappa * np.log1p(ages / s), lambda ages: kappa / (ages + s))

    optimum = optimize.minimize(loss, np.log((1.0, max(float(np.median(hours)), 1e-3))), method="Nelder-Mead")
    kappa, s = np.exp(np.clip(optimum.x, -_FAR, _FAR)).tolist()
    return Lomax(kappa, s, kappa / math.sqrt(count), -float(optimum.fun))


def fitted(spells: Sequence[Spell], gap: float = 0.0) -> Fitted:
    """Return the law of these spells, in the order in which they began, and how well it agrees.

    Raises:
        ValueError: too few were seen to end.
    """
    hours, ended = _arrays(spells)
    law = fit(spells, gap)
    half = len(spells) // 2
    try:
        later = goodness(fit(spells[:half], gap), spells[half:], gap)
    except ValueError:
        later = None
    within = goodness(law, spells, gap)
    return Fitted(law, len(spells), int(ended.sum()), float(hours.sum()), _memoryless(hours, ended, gap), within, later)


def _memoryless(hours: Array, ended: Flags, gap: float) -> float:
    """Return the log-likelihood of the best constant rate."""
    count, lived = float(ended.sum()), np.maximum(hours - gap, 0.0).sum() if gap else hours.sum()
    rate = math.log1p(count * gap / lived) / gap if gap and lived else count / max(float(lived), 1e-9)
    return _likelihood(hours, ended, gap, lambda ages: rate * ages, lambda ages: np.full(len(ages), rate))


def goodness(law: Lomax, spells: Sequence[Spell], gap: float = 0.0) -> Goodness:
    """Return the agreement of spells with a law.

    Raises:
        ValueError: there is no spell.
    """
    seen = survival.kaplan_meier(spells)
    shares = law.share(seen.ages)
    # Between two looks nothing is known: there the curves are not compared.
    before = np.append(1.0, seen.shares[:-1]) if not gap else seen.shares
    distance = float(np.max(np.maximum(np.abs(seen.shares - shares), np.abs(before - shares))))
    return Goodness(len(spells), distance, KS_5_PERCENT / math.sqrt(len(spells)), _bins(law, spells))


def _bins(law: Lomax, spells: Sequence[Spell]) -> tuple[Bin, ...]:
    hours, ended = _arrays(spells)
    found = []
    for low, high in zip(AGES, (*AGES[1:], math.inf), strict=True):
        at_risk = hours[hours > low]
        reached = np.minimum(at_risk, high)
        expected = float(law.kappa * np.log((reached + law.s) / (low + law.s)).sum())
        seen = int((ended & (hours > low) & (hours <= high)).sum())
        found.append(Bin(low, None if high == math.inf else high, seen, expected))
    return tuple(found)


def _likelihood(
    hours: Array, ended: Flags, gap: float, risk: Callable[[Array], Array], hazard: Callable[[Array], Array]
) -> float:
    """Return the log-likelihood under a cumulated hazard: of the ends' instants, or of the looks around them."""
    if not gap:
        return float(np.log(hazard(hours[ended])).sum() - risk(hours).sum())
    lived = np.maximum(hours - gap, 0.0)
    within = risk(hours[ended]) - risk(lived[ended])
    return float(np.log(-np.expm1(-np.maximum(within, 1e-12))).sum() - risk(lived).sum())


def _arrays(spells: Sequence[Spell]) -> tuple[Array, Flags]:
    return np.array([spell.hours for spell in spells]), np.array([spell.has_ended for spell in spells], dtype=np.bool_)
