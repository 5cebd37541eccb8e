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
"""An interval drawn from fewer clusters than these is left out: a percentile of two or three values is no bound."""


def clustered(differences: Sequence[float], clusters: Sequence[str], seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the mean of `differences`, drawing whole clusters; equal seeds give equal ones.

    From fewer than `FEWEST` clusters no interval is made, unless nothing differs: its ends are infinite.
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


def told(ends: tuple[float, float], digits: str = ".3f") -> str:
    """Return an interval for people; `digits` is how a number is written."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not known"
    return f"[{low:+{digits}}, {high:+{digits}}]"


def plain(ends: tuple[float, float]) -> list[float | None]:
    """Return an interval for JSON, which holds no number without bounds."""
    return [end if math.isfinite(end) else None for end in ends]
