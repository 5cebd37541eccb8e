"""`availability`: a live dial chosen by target, with a first worth fitted on all records but the one it is judged on.

The dial sees the earlier days of the judged record, as a daemon does, and no later one. Two choices are made on the
other records alone: the first worth of the dial, and the target at which ours is compared with SpotHedge +1.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agent.decide.service.availability_dial import LAW, Law
from agent.lab.availability.availability_problem import BOUND, LIVE, AvailabilityProblem
from agent.lab.availability.span import Setting
from agent.lab.bench import interval
from agent.lab.bench.comparison import Problem
from agent.lab.bench.result_table import Table
from agent.lab.cross_validation.rounds import Report, Round
from agent.lab.cross_validation.trace_records import Record

RIVAL, OURS, ALL_POOLS = "spothedge_1", "hedged_live", "all"
RULES = ("round_robin", "spothedge_0", RIVAL, "spothedge_2")
FIRSTS = (0.02, 0.06, 0.12, 0.24)
"""First worths over the allowance that are tried on the other records."""
NOTES = (
    "mean dollars of a day, and the share of it with enough warm slots; ours: hedged with a live dial at a target",
    "each record: the first worth was fitted on all other records, where every one reaches 99 % at the least dollars",
    "spothedge: our reading of SpotHedge's rule; agent/lab/availability/availability_baselines.py lists the readings",
    "*: the least target at which ours was as available as SpotHedge +1 on each of the other records",
    "bound: the linear programme at that target, day by day, which no plan can be below; all pools: that group alone",
)
Compare = Callable[[Problem, tuple[str, ...]], Table]
"""Runs these strategies over a problem."""


@dataclass(frozen=True, slots=True)
class Aim:
    """Ours at a target in one scope of a record, beside SpotHedge +1 and the bound."""

    scope: str
    target: float
    dollars: float
    availability: float
    rival_dollars: float
    rival_availability: float
    difference: float
    interval: tuple[float, float]
    bound: float
    is_chosen: bool

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "interval"}
        return {**shown, "ci95": interval.plain(self.interval), "over_bound": self.dollars / self.bound - 1}


@dataclass(frozen=True, slots=True)
class Mean:
    """A strategy over the days of a record: its cost as a share of all on demand, and its availability."""

    share: float
    availability: float


@dataclass(frozen=True, slots=True)
class WarmSlots:
    """The problem `availability`, judged record by record on days of `hours` every `stride_hours`."""

    hours: float = 24.0
    stride_hours: float = 24.0
    setting: Setting = field(default_factory=Setting)
    _means: dict[tuple[str, float, str], Mean] = field(default_factory=dict)
    _judged: list[tuple[Record, float, tuple[Aim, ...]]] = field(default_factory=list)

    def judge(self, record: Record, others: Sequence[Record], compare: Compare) -> tuple[Table, dict[str, Any]]:
        """Return the table of a record at the setting's target, and ours at each target."""
        law = self._fitted(others)
        chosen = self._chosen(others, law)
        tables = {
            scope: compare(self._problem(record, law, scope), (*RULES, *LIVE, BOUND)) for scope in ("", ALL_POOLS)
        }
        aims = tuple(
            self._aim(table, name, record, law, scope, chosen, compare)
            for scope, table in tables.items()
            for name in by_target(self.setting)
        )
        self._judged.append((record, law.first, aims))
        figures = {"first": law.first, "zones": zones(record), "chosen_target": chosen}
        return tables[""], {**figures, "targets": [each.document() for each in aims]}

    def report(self, _rounds: Sequence[Round]) -> Report:
        """Return one table with a row for each record, scope and target."""
        heading = ["record", "zones", "first", "pools", "target", "ours $", "share", "spothedge_1 $", "share"]
        heading += ["less", "95 %", "bound $", "over it"]
        return Report(([heading, *self._lines()],), NOTES)

    def _lines(self) -> Iterator[list[str]]:
        for record, first, aims in self._judged:
            for aim in aims:
                yield [
                    record.name,
                    str(zones(record)),
                    f"{first:g}",
                    aim.scope or "all groups",
                    f"{aim.target:g}{' *' if aim.is_chosen else ''}",
                    f"{aim.dollars:.2f}",
                    f"{aim.availability:.4f}",
                    f"{aim.rival_dollars:.2f}",
                    f"{aim.rival_availability:.4f}",
                    f"{aim.difference:+.2f}",
                    interval.as_text(aim.interval, ".2f"),
                    f"{aim.bound:.2f}",
                    f"{aim.dollars / aim.bound - 1:+.1%}",
                ]

    def _problem(self, record: Record, law: Law, scope: str = "", target: float | None = None) -> AvailabilityProblem:
        setting = replace(self.setting, target=target or self.setting.target)
        return AvailabilityProblem(record.folder, self.hours, self.stride_hours, setting, law=law, group=scope or None)

    def _aim(
        self, table: Table, name: str, record: Record, law: Law, scope: str, chosen: float, compare: Compare
    ) -> Aim:
        rows = {row.strategy: row for row in table.rows}
        ours, rival, target = rows[name], rows[RIVAL], by_target(self.setting)[name]
        if target == self.setting.target:
            bound = rows[BOUND].mean_cost
        else:
            bound = compare(self._problem(record, law, scope, target), (BOUND,)).rows[0].mean_cost
        return Aim(
            scope=scope,
            target=target,
            dollars=ours.mean_cost,
            availability=ours.figures["availability"],
            rival_dollars=rival.mean_cost,
            rival_availability=rival.figures["availability"],
            difference=ours.difference,
            interval=ours.interval,
            bound=bound,
            is_chosen=target == chosen,
        )

    def _fitted(self, others: Sequence[Record]) -> Law:
        """Return the law with the first worth that costs least where every other record reaches the target."""
        laws = [replace(LAW, first=first) for first in FIRSTS]
        means = {law: [self._mean(each, law, OURS) for each in others] for law in laws}
        reached = {law: min(each.availability for each in found) for law, found in means.items()}
        enough = [law for law in laws if reached[law] >= self.setting.target]
        if not enough:
            return max(laws, key=lambda law: reached[law])
        return min(enough, key=lambda law: sum(each.share for each in means[law]))

    def _chosen(self, others: Sequence[Record], law: Law) -> float:
        """Return the least target at which ours was as available as SpotHedge +1 on each other record."""
        targets = by_target(self.setting)
        for name in sorted(targets, key=lambda each: targets[each]):
            pairs = [(self._mean(each, law, name), self._mean(each, law, RIVAL)) for each in others]
            if all(ours.availability >= theirs.availability for ours, theirs in pairs):
                return targets[name]
        return max(targets.values())

    def _mean(self, record: Record, law: Law, name: str) -> Mean:
        """Return a strategy's means over a record, computed once. The rival does not depend on the law."""
        key = record.name, 0.0 if name == RIVAL else law.first, name
        if key not in self._means:
            problem = self._problem(record, law)
            figures = [problem.score(name, day).figures for day in problem.cases()]
            share, availability = (
                sum(each[figure] for each in figures) / len(figures) for figure in ("share", "availability")
            )
            self._means[key] = Mean(share, availability)
        return self._means[key]


def by_target(setting: Setting) -> dict[str, float]:
    """Return the target of each of our live dials, by its name."""
    return {name: target or setting.target for name, target in LIVE.items()}


def zones(record: Record) -> int:
    """Return the number of zones of a record: those of pools of the same name but for the instance count as one."""
    return len({trace.pool.partition("_")[0] for trace in record.traces})
