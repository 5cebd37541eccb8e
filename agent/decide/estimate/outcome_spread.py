"""The distribution of an uncertain sum: its mean, and the value that nine in ten do not exceed.

A sum is a mixture of equally likely cases (a rate of interruptions, a price). In each case it is a least value, with
some chance of an excess over it. The excess is a Gamma with its own mean and variance, given that there is one. The
90th percentile is where the mean of the cases' distribution functions is 0.9, found by halving. Nothing is drawn at
random.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agent.decide.pricing import gamma_distribution

NINE_IN_TEN = 0.9
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a sum: `least` plus an excess of this mean and variance; no excess with the chance `none`."""

    least: float
    mean: float = 0.0
    variance: float = 0.0
    none: float = 1.0

    def at_most(self, value: float) -> float:
        """Return the chance that the sum is at most `value`."""
        if value < self.least:
            return 0.0
        some = 1.0 - self.none
        if some <= 0.0 or self.mean <= 0.0:
            return 1.0
        mean = self.mean / some
        variance = (self.variance + self.mean**2) / some - mean**2
        if variance <= mean**2 * 1e-9:
            return self.none + some * (value - self.least >= mean)
        scale = variance / mean
        return self.none + some * gamma_distribution.below(mean / scale, (value - self.least) / scale)


def mean(cases: Sequence[Case | None]) -> float | None:
    """Return the mean over the cases; None if the sum is infinite in one of them."""
    if any(case is None for case in cases):
        return None
    return math.fsum(case.least + case.mean for case in cases if case is not None) / len(cases)


def at_most(cases: Sequence[Case | None], value: float) -> float:
    """Return the chance that the sum is at most `value`."""
    return math.fsum(case.at_most(value) for case in cases if case is not None) / len(cases)


def quantile(cases: Sequence[Case | None], chance: float = NINE_IN_TEN) -> float | None:
    """Return the least value that the sum does not exceed with `chance`; None if there is none."""
    ending = [case for case in cases if case is not None]
    if len(ending) < chance * len(cases):
        return None
    low = min(case.least for case in ending)
    if at_most(cases, low) >= chance:
        return low
    high = max(case.least + case.mean + 10.0 * math.sqrt(case.variance) for case in ending) + 1e-9
    while at_most(cases, high) < chance:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if at_most(cases, middle) < chance else (low, middle)
    return high
