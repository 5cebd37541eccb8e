"""`deadline`, with hazards fitted on all records but the one that it is judged on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent.lab.bench import interval
from agent.lab.bench.result_table import Table
from agent.lab.cross_validation.rounds import Round
from agent.lab.cross_validation.trace_records import Record
from agent.lab.deadline import deadline_problem, hazard_fitting
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.jobs.trace_windows import Prices

RIVAL, OURS = "levi", deadline_problem.LEARNER
STRATEGIES = ("greedy", "uniform_progress", RIVAL, OURS, deadline_problem.OPTIMUM)

NOTES = ("each record: fitted on all other records; mean dollars; 95 %: paired bootstrap of pools x four days",)


@dataclass(frozen=True, slots=True)
class Plan:
    """The windows and jobs of each record. Hours are of a window and from one window to the next."""

    hours: float
    stride_hours: float
    settings: tuple[Setting, ...]
    prices: Prices


def problem(plan: Plan, judged: Record, others: Sequence[Record]) -> deadline_problem.DeadlineProblem:
    """Return the windows of a record, in which `deadline` starts from the hazards of the other records."""
    return deadline_problem.DeadlineProblem(
        folder=judged.folder,
        hours=plan.hours,
        stride_hours=plan.stride_hours,
        settings=plan.settings,
        prices=plan.prices,
        first_hazards=hazard_fitting.fit(_sights(others)),
    )


def share_of_gap(table: Table) -> float:
    """Return the share of the difference between LEVI's rule and the optimum that `deadline` saves."""
    means = {row.strategy: row.mean_cost for row in table.rows}
    gap = means[RIVAL] - means[deadline_problem.OPTIMUM]
    return (means[RIVAL] - means[OURS]) / gap if gap > 0 else 0.0


def lines(rounds: Sequence[Round]) -> list[list[str]]:
    """Return the table of all rounds as text, the heading first."""
    heading = ["record", "runs", "blocks", *STRATEGIES, "of the gap", f"less {RIVAL}", "95 %", "late"]
    return [heading, *(_cells(each) for each in rounds)]


def _cells(one: Round) -> list[str]:
    rows = {row.strategy: row for row in one.table.rows}
    ours = rows[OURS]
    return [
        one.record,
        str(one.table.runs),
        str(one.table.blocks),
        *(f"{rows[name].mean_cost:.2f}" for name in STRATEGIES),
        f"{one.figures['share_of_gap']:.1%}",
        f"{ours.difference:+.3f}",
        interval.as_text(ours.interval),
        str(ours.late),
    ]


def _sights(records: Sequence[Record]) -> Iterator[hazard_fitting.Sight]:
    for record in records:
        for trace in record.traces:
            yield hazard_fitting.Sight(trace.available > 0, trace.gap_seconds / 3600)
