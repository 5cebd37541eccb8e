"""`gpubid lab bench`: compare strategies on the same cases, with the best possible result and intervals."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli.lab import cluster, running
from agent.cli.lab.bench_problems import PROBLEMS
from agent.cli.lab.options import Options, taking
from agent.cli.shared import session

if TYPE_CHECKING:
    from agent.lab.bench.result_table import Table


@taking
def bench(  # noqa: PLR0913 - one parameter per option
    *,
    options: Options,
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")],
    strategies: Annotated[
        str | None, typer.Option(help="Names, or paths of your own files, with commas; all by default.")
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="The strategy that the others are compared with.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap and of random cases.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes of this machine.")] = os.cpu_count() or 1,
    on: cluster.OnOption = None,
    as_json: session.JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table for spreadsheets.")] = False,
    page: Annotated[Path | None, typer.Option(help="Also write an HTML page to this file.")] = None,
) -> None:
    """Run strategies over the same cases. Report the cheaper one, the difference, and its confidence interval."""
    if page is not None:
        running.must_be_writable(page)
    what = running.contest(running.built(problem, options), strategies, baseline, options)
    with cluster.workers(on, workers) as computing:
        tables = running.compared(what, computing, seed)
    if page is not None:
        _write(page, tables)
    _print(tables, as_json=as_json, as_csv=as_csv)


def _write(path: Path, tables: "Sequence[Table]") -> None:
    from agent.lab.page import html, saved_table

    running.write(path, html.page([saved_table.table(each.document()) for each in tables]))


def _print(tables: "Sequence[Table]", *, as_json: bool, as_csv: bool) -> None:
    """Print one table alone, or several as a list under their common name."""
    if as_json:
        documents = [each.document() for each in tables]
        name = documents[0]["problem"]
        session.print_json(documents[0] if len(tables) == 1 else {"problem": name, "tables": documents})
        return
    if as_csv:
        from agent.lab.bench import result_table

        sys.stdout.write(result_table.csv_text(tables))
        return
    for each in tables:
        _show(each)


def _show(result: "Table") -> None:
    heading, *rows = result.lines()
    shown = session.table(*heading)
    for row in rows:
        session.add(shown, *row)
    session.show(shown)
    session.say(f"{result.runs} runs; 95 %: paired, clustered bootstrap of {result.draws} draws, seed {result.seed}")
    for note in result.notes():
        session.say(note)
    for key, value in result.about.items():
        text = ", ".join(str(each) for each in value) if isinstance(value, list) else value
        missing = "that of the data" if key.endswith("price") else "not given"
        session.say(f"{key.replace('_', ' ')}: {missing if text is None else text}")
