"""Shared steps of the verbs that compare strategies: build a problem, run it with progress, or end with bad input."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.cli.lab.bench_problems import PROBLEMS
from agent.cli.lab.options import Options
from agent.cli.shared import exits, own_strategies, session
from agent.telemetry.plain_text import plain

if TYPE_CHECKING:
    from agent.decide.strategy import Tuned
    from agent.lab.bench.comparison import Problem, Tunable
    from agent.lab.bench.result_table import Table
    from agent.lab.workers.lab_workers import Workers


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
    """Return a problem by its name, or end with the known names or with the mistake in its options."""
    from agent.lab.bench import comparison

    if name not in PROBLEMS:
        exits.stop(exits.BAD_INPUT, [f"there is no problem {name!r}; known: {', '.join(PROBLEMS)}"])
    with honest():
        try:
            problem = PROBLEMS[name](options)
            # A problem reads its data when its cases are first asked for, so a wrong number is reported here.
            problem.cases()
        except ValueError as error:
            raise comparison.NotComparable("no_problem", str(error)) from error
        return problem


@dataclass(frozen=True, slots=True)
class Contest:
    """A problem with the strategies to compare, also own files, and the baseline (by default the problem's own)."""

    problem: "Problem"
    names: tuple[str, ...]
    baseline: str | None


def contest(problem: "Problem", strategies: str | None, baseline: str | None, options: Options) -> Contest:
    """Return the problem with the named strategies: names or paths of own files, with commas. None means all."""
    names: list[str] = []
    for given in filter(None, (name.strip() for name in (strategies or "").split(","))):
        problem, name = with_own(problem, given, options)
        names.append(name)
    if baseline is not None:
        problem, baseline = with_own(problem, baseline, options)
    return Contest(problem, tuple(names or problem.strategies()), baseline)


def with_own(problem: "Problem", name: str, options: Options) -> "tuple[Problem, str]":
    """Return a problem that knows the strategy, and the strategy's name there.

    `name` is a strategy of the problem or an own file, which runs under its stem. If the problem has a strategy of the
    same name as a stem, the stem means the problem's strategy and the path means the file.
    """
    from agent.lab.bench.comparison import Tunable

    if is_own(problem, name) and isinstance(problem, Tunable):
        own_problem = own(problem, name, options)
        return problem.with_params(own_problem.name, own_problem.params), own_problem.name
    return problem, name


def is_own(problem: "Problem", name: str) -> bool:
    """Return whether a name means an own file."""
    return own_strategies.is_path(name) or name not in problem.strategies()


def own(problem: "Tunable", name: str, options: Options) -> "Tuned":
    """Return the strategy of an own file, or end with 2 and the strategies that the problem can run."""
    from agent import strategy_files

    numbers = {each: params for each in problem.strategies() if (params := problem.params(each)) is not None}
    if not own_strategies.is_path(name) and name not in own_strategies.known(options.config, options.directory):
        sentence = f"{problem.name} knows no {name}; it knows {', '.join(problem.strategies())}"
        exits.stop(exits.BAD_INPUT, [f"{sentence}; for a file of your own {own_strategies.NAMED}"])
    tuned = own_strategies.find(name, options.config, options.directory)
    of = strategy_files.base(tuned)
    if type(numbers.get(of)) is not type(tuned.params):
        takes = ", ".join(each for each in numbers if each in strategy_files.installed()) or "none"
        exits.stop(exits.BAD_INPUT, [f"{name} has numbers of {of}, and {problem.name} runs own files of {takes}"])
    return tuned


def compared(what: Contest, workers: "int | Workers", seed: int) -> "list[Table]":
    """Return the tables of strategies, one for each part of the problem."""
    from agent.lab.bench import comparison

    parts = what.problem.parts() if isinstance(what.problem, comparison.Divided) else [what.problem]
    tables = []
    for part in parts:
        with honest(), _progress(part.name) as on_progress:
            table = comparison.run(
                part, what.names, baseline=what.baseline, workers=workers, seed=seed, on_progress=on_progress
            )
            tables.append(table)
    return tables


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
    """Write a page and report it on stderr, because a program may read standard output."""
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        exits.unwritable(path, error)
    sys.stderr.write(f"wrote {plain(str(path))}\n")


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show at a terminal how many runs are done. Show nothing elsewhere."""
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
