"""`gpubid tune`: your own strategy from data to the live fleet, in steps that are each recorded."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from agent.cli.lab import extra
from agent.cli.shared import completion, exits, session
from agent.cli.tune_loop import loop_data, step_records, steps
from agent.cli.tune_loop.loop import Loop, Refusal

_USED = loop_data.DEFAULTS


def tune(  # noqa: PLR0913 - one parameter per option
    *,
    name: Annotated[str, typer.Argument(help="The name of your strategy: its file is NAME.toml in your folder.")],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    strategy: Annotated[
        str | None, typer.Option(help="Start from this strategy; else from your file, or from patient.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option(help="Run it in this workload's shadow.", autocompletion=completion.workloads)
    ] = None,
    problem: Annotated[str | None, typer.Option(help="The lab's problem to search on; bids by default.")] = None,
    traces: Annotated[Path | None, typer.Option(help="Traces, for a problem that runs on traces.")] = None,
    climates: Annotated[str | None, typer.Option(help="bids: climates, with commas; bidding_war by default.")] = None,
    seeds: Annotated[str | None, typer.Option(help=f"bids: days, one a seed; {_USED['seeds']} by default.")] = None,
    hours: Annotated[float | None, typer.Option(min=0.01, max=1000, help="bids: hours of a day; 8 by default.")] = None,
    keys: Annotated[str | None, typer.Option(help='Numbers to search, with commas, or "all"; one by default.')] = None,
    trials: Annotated[int | None, typer.Option(min=1, help=f"Trials in a study; {_USED['trials']} by default.")] = None,
    folds: Annotated[int | None, typer.Option(min=1, max=20, help="Walk-forward splits; 1 by default.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of search and bootstrap; 0 by default.")] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    after: Annotated[float, typer.Option(min=0, help="Hours in the shadow before it may be promoted.")] = 24.0,
    promotes: Annotated[bool, typer.Option("--promote", help="Let the strategy decide for the workload now.")] = False,
    is_forced: Annotated[bool, typer.Option("--force", help="Continue in spite of a refusal.")] = False,
    begins_anew: Annotated[bool, typer.Option("--again", help="Rename the records and begin again.")] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Tune a strategy step by step: search numbers, test them on other data, run them on paper. Repeat to continue."""
    extra.need("optuna", "scipy", "tomlkit", "matplotlib")
    given = {
        "problem": problem, "strategy": strategy, "traces": str(traces.absolute()) if traces else None,
        "climates": climates, "seeds": seeds, "hours": hours, "keys": keys, "trials": trials, "folds": folds,
        "seed": seed,
    }  # fmt: skip
    loop = Loop(
        name=name,
        config=config,
        records=step_records.Records(config.parent / "tuning" / name),
        given={key: value for key, value in given.items() if value is not None},
        workload=workload,
        workers=workers,
        after=timedelta(hours=after),
        is_forced=is_forced,
        is_quiet=as_json,
    )
    refusal = _go(loop, promotes=promotes, begins_anew=begins_anew)
    if as_json:
        session.print_json(_document(loop, refusal))
    if refusal is not None:
        exits.stop(exits.FAILED, [] if as_json else [refusal])


def _go(loop: Loop, *, promotes: bool, begins_anew: bool) -> str | None:
    """Do the steps. Return the refusal of a step, or None. End with the mistake if the request is wrong."""
    try:
        steps.run(loop, promotes=promotes, begins_anew=begins_anew)
    except ValueError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    except Refusal as error:
        return str(error)
    except OSError as error:
        exits.unwritable(error.filename, error)
    return None


def _document(loop: Loop, refusal: str | None) -> dict[str, Any]:
    """Return the loop as JSON: the records of its steps, the messages of this call, and a refusal."""
    records = {step: loop.records.read(step) for step in step_records.STEPS}
    return {
        "name": loop.name,
        "folder": str(loop.records.folder),
        "steps": [
            {"step": step, "at": one["at"], "digest": one["digest"], "record": str(loop.records.file(step))}
            for step, one in records.items()
            if one is not None
        ],
        "said": loop.said,
        "refusal": refusal,
    }
