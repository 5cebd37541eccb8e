"""`gpubid lab cross-validate`: fit on all records but one, judge on that one, and report every record."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import options, running
from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.lab.cross_validation.deadline_rounds import Plan
    from agent.lab.cross_validation.rounds import Round

PROBLEMS = ("deadline",)


def cross_validate(  # noqa: PLR0913 - one parameter per option
    *,
    traces: Annotated[
        Path,
        typer.Option(envvar="GPUBID_TRACES", help="A folder of records, each a folder with one trace file a pool."),
    ],
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")] = "deadline",
    judge: Annotated[
        str | None, typer.Option(help="Records to judge on, with commas; by default each in turn.")
    ] = None,
    job_hours: Annotated[float, typer.Option(min=0.01, help="Hours of work.")] = 48.0,
    deadline_hours: Annotated[str, typer.Option(metavar="H,H", help="Hours allowed, by commas.")] = "52,70",
    overhead_hours: Annotated[str, typer.Option(metavar="H,H", help="Hours each start loses, by commas.")] = "0.05,0.2",
    stride_hours: Annotated[float, typer.Option(min=0.01, help="From one window's start to the next.")] = 24.0,
    spot_price: Annotated[float | None, typer.Option(min=0, help="$/h; the trace's own by default.")] = None,
    on_demand_price: Annotated[float | None, typer.Option(min=0, help="$/h; the trace's own by default.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    as_json: session.JsonOption = False,
) -> None:
    """Judge our strategy on each record, with numbers that were fitted on the other records alone."""
    if problem not in PROBLEMS:
        exits.stop(exits.BAD_INPUT, [f"there is no problem {problem!r}; known: {', '.join(PROBLEMS)}"])
    from agent.lab.cross_validation import deadline_rounds
    from agent.lab.deadline.deadline_jobs import Setting
    from agent.lab.jobs.trace_windows import Prices

    allowed = options.numbers("--deadline-hours", deadline_hours)
    overheads = options.numbers("--overhead-hours", overhead_hours)
    plan = deadline_rounds.Plan(
        hours=max(allowed),
        stride_hours=stride_hours,
        settings=tuple(Setting.of_hours(job_hours, each, overhead) for each in allowed for overhead in overheads),
        prices=Prices(spot_price, on_demand_price),
    )
    if not traces.exists():
        exits.stop(exits.BAD_INPUT, [f"{traces}: there is no such folder; name one with --traces DIR"])
    names = [name.strip() for name in (judge or "").split(",") if name.strip()]
    with running.honest():
        rounds = list(_rounds(traces, names, plan, workers, seed))
    _print(problem, rounds, as_json=as_json)


def _rounds(traces: Path, names: Sequence[str], plan: "Plan", workers: int, seed: int) -> "Iterator[Round]":
    from agent.clock import SystemClock
    from agent.lab.cross_validation import deadline_rounds, trace_records
    from agent.lab.cross_validation.rounds import Round

    clock = SystemClock()
    for record, others in trace_records.left_out(trace_records.read(traces), names):
        began = clock.monotonic()
        built = deadline_rounds.problem(plan, record, others)
        (table,) = running.compared(running.Contest(built, deadline_rounds.STRATEGIES, None), workers, seed)
        figures = {"share_of_gap": deadline_rounds.share_of_gap(table)}
        fitted_on = tuple(other.name for other in others)
        yield Round(record.name, fitted_on, table, clock.monotonic() - began, figures)


def _print(problem: str, rounds: "Sequence[Round]", *, as_json: bool) -> None:
    from agent.lab.cross_validation import deadline_rounds

    seconds = sum(each.seconds for each in rounds)
    if as_json:
        records = [each.document() for each in rounds]
        session.print_json({"problem": problem, "seconds": seconds, "records": records})
        return
    heading, *rows = deadline_rounds.lines(rounds)
    shown = session.table(*heading)
    for row in rows:
        session.add(shown, *row)
    session.show(shown)
    session.say("each record: fitted on all other records; mean dollars; 95 %: paired bootstrap of pools x four days")
    session.say(f"wall time: {seconds:.0f} s")
