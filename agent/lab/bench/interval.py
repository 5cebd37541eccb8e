"""The certainty of a mean difference: a bootstrap over clusters of dependent cases.

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, percentile intervals; whole clusters are drawn, as
in Cameron, Gelbach and Miller, Review of Economics and Statistics 90(3), 2008.
"""

import math
from collections.abc import Sequence

import numpy as np

DRAWS = 2000
LEVEL = 95.0
FEWEST = 5
"""The fewest clusters for an interval. A percentile of two or three values is no bound."""


def clustered(differences: Sequence[float], clusters: Sequence[str], seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `differences`, drawing whole clusters. Equal seeds give equal intervals.

    With fewer than `FEWEST` clusters the ends are infinite, unless all differences are zero.
    """
    names, places = np.unique(np.asarray(clusters), return_inverse=True)
    if len(names) < FEWEST and any(differences):
        return -math.inf, math.inf
    sums = np.bincount(places, weights=np.asarray(differences, dtype=np.float64))
    sizes = np.bincount(places)
    drawn = np.random.default_rng(seed).integers(len(names), size=(DRAWS, len(names)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.percentile(means, [(100 - LEVEL) / 2, (100 + LEVEL) / 2])
    return float(low), float(high)


def clustered_rates(
    mine: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], clusters: Sequence[str], seed: int
) -> tuple[float, float]:
    """Return the 95 % interval of the difference of two rates: sums of the first figures over sums of the second.

    With fewer than `FEWEST` clusters, or a draw without a denominator, the ends are infinite.
    """
    names, places = np.unique(np.asarray(clusters), return_inverse=True)
    if len(names) < FEWEST:
        return -math.inf, math.inf
    drawn = np.random.default_rng(seed).integers(len(names), size=(DRAWS, len(names)))
    above_mine, below_mine, above_theirs, below_theirs = (
        np.bincount(places, weights=np.asarray(column, dtype=np.float64))[drawn].sum(axis=1)
        for column in (*zip(*mine, strict=True), *zip(*theirs, strict=True))
    )
    if not (below_mine.all() and below_theirs.all()):
        return -math.inf, math.inf
    low, high = np.percentile(
        above_mine / below_mine - above_theirs / below_theirs, [(100 - LEVEL) / 2, (100 + LEVEL) / 2]
    )
    return float(low), float(high)


def as_text(ends: tuple[float, float], digits: str = ".3f") -> str:
    """Return an interval for people. `digits` is the format of a number."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not known"
    return f"[{low:+{digits}}, {high:+{digits}}]"


def plain(ends: tuple[float, float]) -> list[float | None]:
    """Return an interval for JSON, which has no infinite numbers."""
    return [end if math.isfinite(end) else None for end in ends]
