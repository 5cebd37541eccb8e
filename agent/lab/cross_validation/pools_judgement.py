"""The judgement of ours over pools on one record: against the cheapest live rule, as a whole and in its parts.

A live rule knows only the past. `stay` and `optimum` are no live rules.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np

from agent.lab.bench import interval
from agent.lab.bench.result_table import Table
from agent.lab.jobs.job_terms import HOUR, Grid, JobCase
from agent.lab.pools.pools_problem import OPTIMUM, OURS

LIVE = ("on_demand", "eager", "rate")
STRATEGIES = ("stay", *LIVE, OURS, OPTIMUM)


@dataclass(frozen=True, slots=True)
class Part:
    """Some runs of a record: mean dollars of ours, of the cheapest live rule in them, and of the optimum."""

    name: str
    runs: int
    ours: float
    rule: str
    rule_cost: float
    optimum: float

    @property
    def excess(self) -> float:
        """The share by which ours is dearer than the rule."""
        return self.ours / self.rule_cost - 1.0


@dataclass(frozen=True, slots=True)
class Rise:
    """The largest rise of the mean cost of ours with more time: the pools, both hours allowed, and the share."""

    pools: str
    before: float
    after: float
    share: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """The record as a whole with the interval of the difference to its cheapest live rule, and its parts."""

    whole: Part
    difference: float
    interval: tuple[float, float]
    late: int
    starts: float
    optimal_starts: float
    sets: tuple[Part, ...]
    halves: tuple[Part, ...]
    slacks: tuple[Part, ...]
    rise: Rise

    @property
    def dearest(self) -> Part:
        """The part, among zone sets and halves, in which ours does worst against the cheapest live rule there."""
        return max((*self.sets, *self.halves), key=lambda part: part.excess)

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "whole": _document(self.whole),
            "difference": self.difference,
            "ci95": interval.plain(self.interval),
            "late": self.late,
            "starts": self.starts,
            "optimal_starts": self.optimal_starts,
            "starts_ratio": self.starts / self.optimal_starts,
            "sets": [_document(part) for part in self.sets],
            "halves": [_document(part) for part in self.halves],
            "slacks": [_document(part) for part in self.slacks],
            "largest_rise_with_slack": asdict(self.rise),
        }


def judge(table: Table, cases: Sequence[JobCase], seed: int) -> Judgement:
    """Return the judgement of a record's table over its cases."""
    rows = {row.strategy: row for row in table.rows}
    costs = {name: np.array(row.costs) for name, row in rows.items()}
    whole = _part("all", range(len(cases)), costs)
    differences = costs[OURS] - costs[whole.rule]
    middle = _middle(cases)
    return Judgement(
        whole=whole,
        difference=float(differences.mean()),
        interval=interval.clustered(differences.tolist(), [case.cluster for case in cases], seed),
        late=rows[OURS].late,
        starts=rows[OURS].figures["starts"],
        optimal_starts=rows[OPTIMUM].figures["starts"],
        sets=tuple(_parts(cases, costs, pools)),
        halves=tuple(_parts(cases, costs, lambda case: "earlier half" if case.window.first < middle else "later half")),
        slacks=tuple(_parts(cases, costs, lambda case: f"{case.terms.deadline / HOUR:g} h")),
        rise=_largest_rise(cases, costs[OURS]),
    )


def pools(case: JobCase) -> str:
    """Return the name of a case's set of pools."""
    return "+".join(case.terms.pools)


def _middle(cases: Sequence[JobCase]) -> float:
    """Return the tick in the middle of the first and the last beginning."""
    firsts = [case.window.first for case in cases]
    return (min(firsts) + max(firsts)) / 2


def _parts(cases: Sequence[JobCase], costs: Mapping[str, Grid], of: Callable[[JobCase], str]) -> Iterator[Part]:
    names = [of(case) for case in cases]
    for name in dict.fromkeys(names):
        yield _part(name, [place for place, each in enumerate(names) if each == name], costs)


def _part(name: str, chosen: Sequence[int], costs: Mapping[str, Grid]) -> Part:
    means = {strategy: float(each[list(chosen)].mean()) for strategy, each in costs.items()}
    rule = min(LIVE, key=lambda each: means[each])
    return Part(name, len(chosen), means[OURS], rule, means[rule], means[OPTIMUM])


def _largest_rise(cases: Sequence[JobCase], ours: Grid) -> Rise:
    """Return the largest rise over all sets and both of two deadlines, at the same starts and overheads."""
    found = [Rise("", 0.0, 0.0, 0.0)]
    for named in dict.fromkeys(pools(case) for case in cases):
        means: dict[float, list[float]] = {}
        for case, cost in zip(cases, ours.tolist(), strict=True):
            if pools(case) == named:
                means.setdefault(case.terms.deadline / HOUR, []).append(cost)
        mean = {hours: sum(each) / len(each) for hours, each in means.items()}
        found += [Rise(named, *pair, mean[pair[1]] / mean[pair[0]] - 1) for pair in combinations(sorted(mean), 2)]
    return max(found, key=lambda rise: rise.share)


def _document(part: Part) -> dict[str, Any]:
    return {**asdict(part), "excess": part.excess}
