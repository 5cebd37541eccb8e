"""`gpubid lab report`: a bench as one HTML page with plots."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import cluster, extra, running
from agent.cli.lab.bench_problems import PROBLEMS
from agent.cli.lab.options import Options, taking
from agent.cli.lab.tune import STORAGE
from agent.cli.shared import exits

if TYPE_CHECKING:
    from agent.lab.page.html import Plot
    from agent.lab.page.saved_table import Table


@taking
def report(  # noqa: PLR0913 - one parameter per option
    *,
    options: Options,
    to: Annotated[Path, typer.Argument(help="The HTML file to write.")],
    problem: Annotated[str | None, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")] = None,
    table: Annotated[
        Path | None, typer.Option("--from", help="A saved output of gpubid lab bench --json; nothing runs again.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Names, or paths of your own files, with commas; all by default.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="The strategy that the others are compared with.")] = None,
    case: Annotated[str | None, typer.Option(help="The run to show tick by tick; a typical one by default.")] = None,
    study: Annotated[str | None, typer.Option(help="A study of gpubid lab tune, whose trials are drawn too.")] = None,
    storage: Annotated[str, typer.Option(envvar="GPUBID_LAB_STORAGE", help="The database of that study.")] = STORAGE,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap and of random cases.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine.")] = os.cpu_count() or 1,
    on: cluster.OnOption = None,
) -> None:
    """Write one page with the table, the costs, the savings by case, one run, and predicted and seen losses."""
    extra.need("matplotlib", *(extra.of_study(storage) if study is not None else ()))
    running.must_be_writable(to)
    if (problem is None) is (table is None):
        exits.stop(exits.BAD_INPUT, ["name a problem with --problem, or a saved table with --from"])
    if table is not None and any(each is not None for each in (case, strategies, baseline)):
        sentence = "a saved table has no runs and is drawn whole: remove --case, --strategies and --baseline"
        exits.stop(exits.BAD_INPUT, [sentence])
    # Read the study before the bench runs, so that a missing study is reported at once.
    searched = [] if study is None else list(_searched(storage, study))
    if table is not None:
        tables, drawn = _saved(table)
    else:
        tables, drawn = _run(problem or "", options, (strategies, baseline, seed), (on, workers), case)
    from agent.lab.page import html

    drawn += searched
    plots = [each for each in drawn if isinstance(each, html.Plot)]
    running.write(to, html.page(tables, plots, list(dict.fromkeys(each for each in drawn if isinstance(each, str)))))


def _saved(path: Path) -> "tuple[list[Table], list[Plot | str]]":
    """Return the tables in a file, and their plots."""
    from agent.lab.page import plots, saved_table

    with running.honest():
        tables = saved_table.read(path)
    return tables, [*plots.of_saved(tables), "one run, settings side by side, survival: a saved table has no runs"]


def _run(
    name: str,
    options: Options,
    how: tuple[str | None, str | None, int],
    where: tuple[str | None, int],
    case: str | None,
) -> "tuple[list[Table], list[Plot | str]]":
    """Run a problem; return its tables, and the plots of the tables and of the runs."""
    from agent.lab.bench.comparison import Divided
    from agent.lab.page import plots, saved_table

    strategies, baseline, seed = how
    what = running.contest(running.built(name, options), strategies, baseline, options)
    built = what.problem
    if case is not None:
        # A bench may take minutes, so a missing run is reported before it.
        with running.honest():
            plots.must_have(built, case)
    with cluster.workers(*where) as computing:
        compared = running.compared(what, computing, seed)
    tables = [saved_table.table(each.document()) for each in compared]
    parts = built.parts() if isinstance(built, Divided) else [built]
    drawn = [*plots.of_saved(tables)]
    with running.honest():
        for place, (part, each) in enumerate(zip(parts, compared, strict=True)):
            drawn += plots.of_problem(part, each, case, str(place))
        drawn += _lasting(options if "traces" in compared[0].about else None)
    return tables, drawn


def _lasting(options: Options | None) -> "Iterator[Plot | str]":
    """Yield a plot of how long capacity lasts in the traces. For a problem without traces, yield none."""
    from agent.lab.page import predicted_changes
    from agent.lab.traces import trace_files

    if options is None:
        yield "how long capacity lasts: this problem runs on no traces"
        return
    yield (
        predicted_changes.plot(trace_files.folder(options.folder()), "lasting")
        or "how long capacity lasts: it never changed"
    )


def _searched(storage: str, name: str) -> "Iterator[Plot | str]":
    """Yield plots of the trials of a study."""
    from agent.lab.page import search_trials
    from agent.lab.tuning import study

    try:
        past = study.past(storage, name)
    except study.StorageError as error:
        exits.stop(exits.FAILED, [str(error)])
    for place, (each, trials) in enumerate(past.items()):
        yield (
            search_trials.plot(each, trials, f"history-{place}")
            or f"the search {each}: none of its trials has a score yet"
        )
