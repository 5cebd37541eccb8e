"""Shared steps of the verbs that compare strategies: build a problem, run it with progress, or end with bad input."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.lab.options import Options
from agent.cli.lab.problems import PROBLEMS
from agent.cli.shared import exits, session
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from agent.lab.bench.comparison import Problem
    from agent.lab.bench.result_table import Table


@contextlib.contextmanager
def honest() -> Iterator[None]:
    """End with 2 and every sentence if the input cannot be run."""
    from agent.config.problems import ConfigError
    from agent.lab.bench.comparison import NotComparable

    try:
        yield
    except ConfigError as error:
        exits.stop(exits.BAD_INPUT, [str(each) for each in error.problems])
    except NotComparable as error:
        exits.stop(exits.BAD_INPUT, [error.sentence])


def built(name: str, options: Options) -> "Problem":
    """Return a problem by its name, or end with the known names or with the mistake."""
    from agent.lab.bench import comparison

    if name not in PROBLEMS:
        exits.stop(exits.BAD_INPUT, [f"there is no problem {name!r}; known: {', '.join(PROBLEMS)}"])
    with honest():
        try:
            made = PROBLEMS[name](options)
            # A problem reads its data when its cases are first asked for, so a wrong number is reported here.
            made.cases()
        except ValueError as error:
            raise comparison.NotComparable("no_problem", str(error)) from error
        return made


def compared(
    problem: "Problem", strategies: str | None, baseline: str | None, workers: int, seed: int
) -> "list[Table]":
    """Return the tables of strategies, one for each part; names are separated by commas, None means all strategies."""
    from agent.lab.bench import comparison

    given = [name.strip() for name in (strategies or "").split(",")]
    named = [name for name in given if name] or problem.strategies()
    parts = problem.parts() if isinstance(problem, comparison.Divided) else [problem]
    made = []
    for part in parts:
        with honest(), _progress(part.name) as told:
            made.append(comparison.run(part, named, baseline=baseline, workers=workers, seed=seed, told=told))
    return made


def must_be_writable(path: Path) -> None:
    """End if a file cannot be written, before any work is done for it."""
    is_there = path.exists()
    try:
        # Opening the file shows permissions, read-only mounts and too long names, and changes nothing.
        path.open("ab").close()
        if not is_there:
            path.unlink()
    except OSError as error:
        why = f"({error.strerror}); name a file in a folder that exists and that you may write to"
        exits.stop(exits.BAD_INPUT, [f"{path} cannot be written {why}"])


def write(path: Path, text: str) -> None:
    """Write a page and report it on stderr: standard output may be for a program."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        exits.stop(exits.FAILED, [f"{path} cannot be written ({error.strerror})"])
    sys.stderr.write(f"wrote {plain(str(path))}\n")


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show at a terminal how many runs are done; show nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not session.is_terminal(sys.stderr),
    )
    with shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
