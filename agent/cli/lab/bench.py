"""`gpubid lab bench`: strategies side by side on the same cases, with the best that was possible and intervals."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import exits, session
from agent.cli.lab.options import Options, numbers
from agent.cli.lab.problems import PROBLEMS

if TYPE_CHECKING:
    from agent.lab.table import Table


def bench(  # noqa: PLR0913 - one parameter per option
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")],
    traces: Annotated[
        Path | None, typer.Option(envvar="GPUBID_LAB_TRACES", help="A trace file, or a folder with one a pool.")
    ] = None,
    strategies: Annotated[str | None, typer.Option(help="With commas between; all by default.")] = None,
    baseline: Annotated[str | None, typer.Option(help="The strategy that the others are compared with.")] = None,
    job_hours: Annotated[float, typer.Option(min=0.01, help="Hours of work.")] = 48.0,
    deadline_hours: Annotated[str, typer.Option(help="Hours allowed, with commas between.")] = "52,70",
    overhead_hours: Annotated[str, typer.Option(help="Hours that each start loses, with commas between.")] = "0.05,0.2",
    window_hours: Annotated[float, typer.Option(min=0.1, help="Length of a window, before its spare ticks.")] = 70.0,
    stride_hours: Annotated[float, typer.Option(min=0.01, help="From one window's start to the next.")] = 24.0,
    spot_price: Annotated[float | None, typer.Option(min=0, help="$/h; the trace's own by default.")] = None,
    on_demand_price: Annotated[float | None, typer.Option(min=0, help="$/h; the trace's own by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap, and of what is drawn.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    as_json: session.JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table for spreadsheets.")] = False,
) -> None:
    """Run strategies over the same cases and tell which is cheaper, by how much, and how sure that is."""
    from agent.config.problems import ConfigError
    from agent.lab import bench as runner

    if problem not in PROBLEMS:
        exits.stop(exits.BAD_INPUT, [f"there is no problem {problem!r}; there is {', '.join(PROBLEMS)}"])
    options = Options(
        traces=traces,
        job_hours=job_hours,
        deadline_hours=numbers("--deadline-hours", deadline_hours),
        overhead_hours=numbers("--overhead-hours", overhead_hours),
        window_hours=window_hours,
        stride_hours=stride_hours,
        spot_price=spot_price,
        on_demand_price=on_demand_price,
    )
    try:
        built = PROBLEMS[problem](options)
        named = built.strategies() if strategies is None else strategies.split(",")
        made = runner.run(built, named, baseline=baseline, workers=workers, seed=seed)
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, [str(each) for each in error.problems])
    except ValueError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    _print(made, as_json=as_json, as_csv=as_csv)


def _print(made: "Table", *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        session.print_json(made.document())
    elif as_csv:
        sys.stdout.write(made.csv())
    else:
        _show(made)


def _show(made: "Table") -> None:
    heading, *rows = made.lines()
    shown = session.table(*heading)
    for row in rows:
        session.add(shown, *row)
    session.show(shown)
    session.say(f"{made.runs} runs; 95 %: paired, clustered bootstrap of {made.draws} draws, seed {made.seed}")
    for key, value in made.about.items():
        text = ", ".join(str(each) for each in value) if isinstance(value, list) else value
        session.say(f"{key.replace('_', ' ')}: {'the data has its own' if text is None else text}")
