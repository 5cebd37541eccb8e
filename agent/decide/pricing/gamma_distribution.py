"""A Gamma distribution: its distribution function, and cells of equal chance, each with its own mean.

Sources: the series of the lower incomplete gamma function (Abramowitz and Stegun, 6.5.29); for large shapes the cube
root is nearly normal (Wilson and Hilferty, PNAS 17(12), 1931).
"""

import itertools
import math
from dataclasses import dataclass

_LARGE_SHAPE = 150.0
_PRECISION = 1e-12
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Gamma:
    """The distribution of an uncertain rate per hour, with a mean of shape / weight; `weight` is in hours."""

    shape: float
    weight: float

    @property
    def mean(self) -> float:
        """The mean, per hour."""
        return self.shape / self.weight

    def scaled(self, share: float) -> "Gamma":
        """Return the distribution of `share` times the rate; `share` is above 0."""
        return Gamma(self.shape, self.weight / share)

    def cells(self, count: int) -> tuple[float, ...]:
        """Return the means of `count` cells of equal chance.

        The mean of these means is the mean of the distribution.
        """
        edges = [_quantile(self.shape, number / count) for number in range(1, count)]
        # The mean over a cell follows from a Gamma whose shape is one higher: x f(x; a) = a f(x; a + 1).
        shares = [0.0, *(below(self.shape + 1.0, edge) for edge in edges), 1.0]
        return tuple(self.mean * count * (right - left) for left, right in itertools.pairwise(shares))


def below(shape: float, x: float) -> float:
    """Return the chance that a Gamma variable of this shape and scale one is at most `x`."""
    if x <= 0.0:
        return 0.0
    if shape > _LARGE_SHAPE or x > shape + 40.0 * math.sqrt(shape) + 40.0:
        spread = 1.0 / (9.0 * shape)
        return normal_below(((x / shape) ** (1.0 / 3.0) - (1.0 - spread)) / math.sqrt(spread))
    term = total = 1.0 / shape
    step = shape
    while term > total * _PRECISION:
        step += 1.0
        term *= x / step
        total += term
    return min(1.0, total * math.exp(shape * math.log(x) - x - math.lgamma(shape)))


def normal_below(x: float) -> float:
    """Return the chance that a standard normal variable is at most `x`."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _quantile(shape: float, chance: float) -> float:
    low, high = 0.0, shape + 1.0
    while below(shape, high) < chance:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if below(shape, middle) < chance else (low, middle)
    return (low + high) / 2.0
