"""`gpubid lab cross-validate`: fit on all records but one, judge on that one, and report every record."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import cluster, options, running
from agent.cli.shared import exits, session

if TYPE_CHECKING:
    from agent.lab.cross_validation.leave_one_out import Judge
    from agent.lab.cross_validation.pools_rounds import Plan
    from agent.lab.cross_validation.rounds import Round


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a run: hours of work, allowed, lost by each start, and between starts; prices in $/h."""

    work: float
    allowed: tuple[float, ...]
    overheads: tuple[float, ...]
    stride: float
    spot_price: float | None
    on_demand_price: float | None
    unknown_on_demand_price: float | None


def _deadline(jobs: Jobs, _seed: int) -> "Judge":
    from agent.lab.cross_validation import deadline_rounds, leave_one_out
    from agent.lab.deadline.deadline_jobs import Setting
    from agent.lab.jobs.trace_windows import Prices

    settings = tuple(Setting.of_hours(jobs.work, each, start) for each in jobs.allowed for start in jobs.overheads)
    prices = Prices(jobs.spot_price, jobs.on_demand_price)
    return leave_one_out.OnePool(deadline_rounds.Plan(max(jobs.allowed), jobs.stride, settings, prices))


def _deadline_pools(jobs: Jobs, seed: int) -> "Judge":
    from agent.lab.cross_validation import leave_one_out

    if jobs.spot_price is not None or jobs.on_demand_price is not None:
        sentence = "prices differ between pools; leave --spot-price and --on-demand-price out"
        exits.stop(exits.BAD_INPUT, [f"deadline-pools takes the traces' own prices: {sentence}"])
    return leave_one_out.SeveralPools(_pools_plan(jobs), seed)


def _longest_job(jobs: Jobs, _seed: int) -> "Judge":
    from agent.lab.cross_validation import leave_one_out

    return leave_one_out.LongestJob(_pools_plan(jobs))


def _availability(jobs: Jobs, _seed: int) -> "Judge":
    from agent.cli.lab import extra
    from agent.lab.availability.span import Setting
    from agent.lab.cross_validation import availability_rounds

    extra.need("scipy")
    setting = Setting(spot_price=jobs.spot_price)
    return availability_rounds.WarmSlots(hours=max(jobs.allowed), stride_hours=jobs.stride, setting=setting)


def _pools_plan(jobs: Jobs) -> "Plan":
    from agent.lab.cross_validation import pools_rounds

    return pools_rounds.Plan(jobs.work, jobs.allowed, jobs.overheads, jobs.stride, jobs.unknown_on_demand_price)


PROBLEMS: dict[str, tuple[Callable[[Jobs, int], "Judge"], float, str, str, float]] = {
    "deadline": (_deadline, 48.0, "52,70", "0.05,0.2", 24.0),
    "deadline-pools": (_deadline_pools, 16.0, "17,18,20,24", "0.2", 12.0),
    "longest-job": (_longest_job, 0.0, "1.05,1.1,1.2,1.5", "0.2", 0.0),
    "availability": (_availability, 0.0, "24", "0.2", 24.0),
}
"""Problems by name, and their default hours: of work, allowed, lost by a start, and between starts."""


def cross_validate(  # noqa: PLR0913 - one parameter per option
    *,
    traces: Annotated[
        Path,
        typer.Option(envvar="GPUBID_TRACES", help="A folder with a folder of trace files for each record."),
    ],
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")] = "deadline",
    judge: Annotated[
        str | None, typer.Option(help="Records to judge on, with commas; by default each in turn.")
    ] = None,
    job_hours: Annotated[float | None, typer.Option(min=0.01, help="Hours of work; 48, several pools 16.")] = None,
    deadline_hours: Annotated[
        str | None, typer.Option(metavar="H,H", help="Hours allowed; longest-job: multiples of the work.")
    ] = None,
    overhead_hours: Annotated[
        str | None, typer.Option(metavar="H,H", help="Hours each start loses, by commas; 0.05,0.2, several pools 0.2.")
    ] = None,
    stride_hours: Annotated[
        float | None, typer.Option(min=0.01, help="Hours from one window to the next; 24, several pools 12.")
    ] = None,
    spot_price: Annotated[float | None, typer.Option(min=0, help="deadline: $/h; by default the trace's own.")] = None,
    on_demand_price: Annotated[
        float | None, typer.Option(min=0, help="deadline: $/h; by default the trace's own.")
    ] = None,
    unknown_on_demand_price: Annotated[
        float | None, typer.Option(min=0, help="deadline-pools: $/h on demand where a record has none.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine.")] = os.cpu_count() or 1,
    on: cluster.OnOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    as_json: session.JsonOption = False,
) -> None:
    """Judge our strategy on each record, with numbers that were fitted only on the other records."""
    if problem not in PROBLEMS:
        exits.stop(exits.BAD_INPUT, [f"there is no problem {problem!r}; known: {', '.join(PROBLEMS)}"])
    if not traces.exists():
        exits.stop(exits.BAD_INPUT, [f"{traces}: there is no such folder; name one with --traces DIR"])
    build, work, allowed, overheads, stride = PROBLEMS[problem]
    jobs = Jobs(
        job_hours or work,
        options.numbers("--deadline-hours", deadline_hours or allowed),
        options.numbers("--overhead-hours", overhead_hours or overheads),
        stride_hours or stride,
        spot_price,
        on_demand_price,
        unknown_on_demand_price,
    )
    judged = build(jobs, seed)
    _print(problem, judged, _rounds(judged, traces, judge or "", (on, workers), seed), as_json=as_json)


def _rounds(judged: "Judge", traces: Path, named: str, where: tuple[str | None, int], seed: int) -> "list[Round]":
    """Judge each record on the workers at an address, or on so many processes of this machine."""
    from agent.lab.bench.comparison import Problem
    from agent.lab.bench.result_table import Table
    from agent.lab.cross_validation import leave_one_out

    names = [name.strip() for name in named.split(",") if name.strip()]
    with running.honest(), cluster.workers(*where) as computing:

        def compare(problem: Problem, strategies: tuple[str, ...]) -> Table:
            return running.compared(running.Contest(problem, strategies, None), computing, seed)[0]

        return list(leave_one_out.rounds(judged, traces, names, compare))


def _print(problem: str, judged: "Judge", rounds: "Sequence[Round]", *, as_json: bool) -> None:
    seconds = sum(each.seconds for each in rounds)
    report = judged.report(rounds)
    if as_json:
        records = [each.document() for each in rounds]
        session.print_json({"problem": problem, "seconds": seconds, "records": records, "report": report.document()})
        return
    for heading, *rows in report.tables:
        shown = session.table(*heading)
        for row in rows:
            session.add(shown, *row)
        session.show(shown)
    for note in report.notes:
        session.say(note)
    session.say(f"wall time: {seconds:.0f} s ({', '.join(f'{each.record} {each.seconds:.0f}' for each in rounds)})")
