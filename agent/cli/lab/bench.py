"""`gpubid lab bench`: strategies side by side on the same cases, with the best that was possible and intervals."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import exits, session
from agent.cli.lab.options import Options, taking
from agent.cli.lab.problems import PROBLEMS

if TYPE_CHECKING:
    from agent.lab.table import Table


@taking
def bench(  # noqa: PLR0913 - one parameter per option
    *,
    options: Options,
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")],
    strategies: Annotated[str | None, typer.Option(help="With commas between; all by default.")] = None,
    baseline: Annotated[str | None, typer.Option(help="The strategy that the others are compared with.")] = None,
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
    try:
        built = PROBLEMS[problem](options)
        named = built.strategies() if strategies is None else strategies.split(",")
        parts = built.parts() if isinstance(built, runner.Divided) else [built]
        made = [runner.run(part, named, baseline=baseline, workers=workers, seed=seed) for part in parts]
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, [str(each) for each in error.problems])
    except ValueError as error:
        exits.stop(exits.BAD_INPUT, [str(error)])
    _print(made, as_json=as_json, as_csv=as_csv)


def _print(made: "Sequence[Table]", *, as_json: bool, as_csv: bool) -> None:
    """Print one table as itself, several as a list under their common name."""
    if as_json:
        documents = [each.document() for each in made]
        name = documents[0]["problem"]
        session.print_json(documents[0] if len(made) == 1 else {"problem": name, "tables": documents})
        return
    for each in made:
        if as_csv:
            sys.stdout.write(each.csv())
        else:
            _show(each)


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
