"""The problems of a leave-one-record-out run: each judges one record with numbers fitted on the others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.lab.bench.comparison import Problem
from agent.lab.bench.result_table import Table
from agent.lab.cross_validation import deadline_rounds, pools_judgement, pools_report, pools_rounds
from agent.lab.cross_validation.rounds import Report, Round
from agent.lab.cross_validation.trace_records import Record

Compare = Callable[[Problem, tuple[str, ...]], Table]
"""Runs these strategies over a problem."""


class Judge(Protocol):
    """A problem that can be judged record by record."""

    def judge(self, record: Record, others: Sequence[Record], compare: Compare) -> tuple[Table, dict[str, Any]]:
        """Return the table of a record, with numbers fitted on the others, and further figures for JSON."""
        ...

    def report(self, rounds: Sequence[Round]) -> Report:
        """Return the tables of all rounds for people."""
        ...


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
