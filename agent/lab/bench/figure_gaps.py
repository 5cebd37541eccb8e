"""The paired differences of further figures of a comparison, each with its interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from agent.lab.bench import interval


@runtime_checkable
class Detailed(Protocol):
    """A problem that compares further figures of its scores."""

    def compared(self) -> Sequence[str]:
        """Return the figures whose mean difference gets an interval."""
        ...

    def rates(self) -> Mapping[str, tuple[str, str]]:
        """Return figures that are the sum of one figure over the sum of another, over all cases."""
        ...


@runtime_checkable
class Spread(Protocol):
    """A problem that shows how low a figure of its scores falls."""

    def tenths(self) -> Mapping[str, str]:
        """Return names of figures below which a tenth of the cases are, each with the figure of a case."""
        ...


@dataclass(frozen=True, slots=True)
class Gap:
    """The difference of a figure to the baseline's, and its 95 % interval."""

    difference: float
    interval: tuple[float, float]

    @property
    def text(self) -> str:
        """The difference and its interval for people."""
        return f"{self.difference:+.3f} {interval.as_text(self.interval)}"

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"difference": self.difference, "ci95": interval.plain(self.interval)}


Figures = Sequence[Mapping[str, float]]
"""The figures of each case under one strategy."""


def rates(problem: object, mine: Figures) -> dict[str, float]:
    """Return the rates of a strategy over all cases. One without a denominator is left out."""
    if not isinstance(problem, Detailed):
        return {}
    sums = {name: (_sum(mine, above), _sum(mine, below)) for name, (above, below) in problem.rates().items()}
    return {name: above / below for name, (above, below) in sums.items() if below}


def overall(problem: object, mine: Figures) -> dict[str, float]:
    """Return the figures of a strategy over all cases: rates and tenth percentiles."""
    tenths = problem.tenths() if isinstance(problem, Spread) else {}
    spread = {name: float(np.percentile([each[key] for each in mine], 10)) for name, key in tenths.items()}
    return {**rates(problem, mine), **spread}


def gaps(problem: object, mine: Figures, theirs: Figures, clusters: Sequence[str], seed: int) -> dict[str, Gap]:
    """Return the differences of a strategy's figures and rates to the baseline's, case by case."""
    if not isinstance(problem, Detailed):
        return {}
    found = {}
    for key in problem.compared():
        differences = [one[key] - other[key] for one, other in zip(mine, theirs, strict=True)]
        found[key] = Gap(sum(differences) / len(differences), interval.clustered(differences, clusters, seed))
    ours, others = rates(problem, mine), rates(problem, theirs)
    for key in ours.keys() & others.keys():
        above, below = problem.rates()[key]
        pairs = [[(each[above], each[below]) for each in side] for side in (mine, theirs)]
        found[key] = Gap(ours[key] - others[key], interval.clustered_rates(pairs[0], pairs[1], clusters, seed))
    return found


def _sum(figures: Figures, key: str) -> float:
    return sum(each[key] for each in figures)
