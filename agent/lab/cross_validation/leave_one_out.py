"""The problems of a leave-one-record-out run: each judges one record with numbers fitted on the others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agent.clock import SystemClock
from agent.lab.bench.comparison import NotComparable, Problem
from agent.lab.bench.result_table import Table
from agent.lab.cross_validation import deadline_rounds, pools_judgement, pools_report, pools_rounds, trace_records
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
