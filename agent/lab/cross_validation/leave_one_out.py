"""The problems of a leave-one-record-out run: each judges one record with numbers fitted on the others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from agent.clock import SystemClock
from agent.lab.bench.comparison import NotComparable, Problem
from agent.lab.bench.result_table import Table
from agent.lab.cross_validation import deadline_rounds, pools_judgement, pools_report, pools_rounds, trace_records
from agent.lab.cross_validation.rounds import Report, Round
from agent.lab.cross_validation.trace_records import Record
from agent.lab.pools.pools_problem import OPTIMUM, OURS, RATE

LONGEST = (RATE, OURS, OPTIMUM)
LONGEST_NOTE = (
    "one run each, so no interval; rate: our reading of SkyNomad's rule; both pay a minute for each request that is "
    "granted and not kept, and the optimum sees everything for nothing"
)
Compare = Callable[[Problem, tuple[str, ...]], Table]
"""Runs these strategies over a problem."""


class Judge(Protocol):
    """A problem that can be judged record by record."""

    def judge(self, record: Record, others: Sequence[Record], compare: Compare) -> tuple[Table, dict[str, Any]]:
        """Return the table of a record, with numbers fitted on the others, and further figures for JSON."""
        ...

    def report(self, rounds: Sequence[Round], /) -> Report:
        """Return the tables of all rounds for people."""
        ...


def rounds(judge: Judge, root: Path, named: Sequence[str], compare: Compare) -> Iterator[Round]:
    """Yield the round of each named record below a folder, or of each record.

    Raises:
        ConfigError: a file is no trace, a name is of no record, or there are fewer than two records.
        NotComparable: a record has no law to fit, or a job does not fit.
    """
    clock = SystemClock()
    for record, others in trace_records.left_out(trace_records.read(root), named):
        began = clock.monotonic()
        try:
            table, figures = judge.judge(record, others, compare)
        except ValueError as error:
            raise NotComparable("no_problem", f"{record.name}: {error}") from error
        yield Round(record.name, tuple(each.name for each in others), table, clock.monotonic() - began, figures)


@dataclass(frozen=True, slots=True)
class OnePool:
    """`deadline`: one job over one pool."""

    plan: deadline_rounds.Plan

    def judge(self, record: Record, others: Sequence[Record], compare: Compare) -> tuple[Table, dict[str, Any]]:
        """Return the table of a record, and the share of the gap between LEVI's rule and the optimum."""
        table = compare(deadline_rounds.problem(self.plan, record, others), deadline_rounds.STRATEGIES)
        return table, {"share_of_gap": deadline_rounds.share_of_gap(table)}

    def report(self, rounds: Sequence[Round]) -> Report:
        """Return one table with a row for each record."""
        return Report((deadline_rounds.lines(rounds),), deadline_rounds.NOTES)


@dataclass(frozen=True, slots=True)
class SeveralPools:
    """`deadline-pools`: one job over several pools. It keeps what was judged for the report."""

    plan: pools_rounds.Plan
    seed: int
    _judged: list[tuple[str, pools_judgement.Judgement]] = field(default_factory=list)

    def judge(self, record: Record, others: Sequence[Record], compare: Compare) -> tuple[Table, dict[str, Any]]:
        """Return the table of a record, and its judgement against the cheapest live rule."""
        problem = pools_rounds.problem(self.plan, record, others)
        table = compare(problem, pools_judgement.STRATEGIES)
        judged = pools_judgement.judge(table, problem.cases(), self.seed)
        self._judged.append((record.name, judged))
        return table, judged.document()

    def report(self, _rounds: Sequence[Round]) -> Report:
        """Return a table of records, and one of their parts."""
        return Report((pools_report.records(self._judged), pools_report.parts(self._judged)), pools_report.NOTES)


@dataclass(frozen=True, slots=True)
class LongestJob:
    """The longest job that fits into a record, ours against our reading of SkyNomad's rule; both pay for probes.

    `plan.allowed` are ratios of the time allowed to the work. All ratios have the same work.
    """

    plan: pools_rounds.Plan
    _rows: list[list[str]] = field(default_factory=list)

    def judge(self, record: Record, others: Sequence[Record], compare: Compare) -> tuple[Table, dict[str, Any]]:
        """Return the table of a record, and the costs of each job."""
        ratios = self.plan.allowed
        work = pools_rounds.longest(record, max(ratios))
        allowed = tuple(ratio * work for ratio in ratios)
        plan = replace(self.plan, work=work, allowed=allowed, stride_hours=2 * max(allowed), pays_for_probes=True)
        problem = pools_rounds.problem(plan, record, others)
        table = compare(problem, LONGEST)
        costs = {row.strategy: row.costs for row in table.rows}
        jobs: list[dict[str, Any]] = []
        for place, case in enumerate(problem.cases()):
            dollars = {name: costs[name][place] for name in LONGEST}
            ratio = case.terms.deadline / case.terms.work
            jobs.append({"pools": list(case.terms.pools), "work_hours": work, "ratio": ratio, **dollars})
            less = dollars[OURS] / dollars[RATE] - 1
            cells = [f"{dollars[name]:.2f}" for name in LONGEST]
            pools = pools_report.short("+".join(case.terms.pools))
            self._rows.append([record.name, pools, f"{work:.0f}", f"{ratio:.2f}", *cells, f"{less:+.1%}"])
        return table, {"jobs": jobs}

    def report(self, _rounds: Sequence[Round]) -> Report:
        """Return one table with a row for each job."""
        heading = ["record", "pools", "work h", "ratio", "rate, our reading", "hedged", "optimum", "less the rule"]
        return Report(([heading, *self._rows],), (LONGEST_NOTE,))
