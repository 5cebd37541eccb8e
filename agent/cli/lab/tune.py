"""`gpubid lab tune`: search for a strategy's numbers, score them on other data, and write them to a file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.lab import extra, running
from agent.cli.lab.bench_problems import PROBLEMS
from agent.cli.lab.options import Options, taking
from agent.cli.shared import exits, session
from agent.config import problems

if TYPE_CHECKING:
    from agent.decide.strategy import Params
    from agent.lab.bench.comparison import Tunable
    from agent.lab.tuning.number_search import Compared, Order, Part, Tuning

STORAGE = "sqlite:///gpubid-lab.sqlite3"


@taking
def tune(  # noqa: PLR0913 - one parameter per option
    *,
    options: Options,
    strategy: Annotated[
        str, typer.Argument(help="The strategy whose numbers are searched, or your own file of a strategy.")
    ],
    problem: Annotated[str, typer.Option(help=f"One of {', '.join(PROBLEMS)}.")],
    keys: Annotated[str | None, typer.Option(help="Search only these numbers, with commas between.")] = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials in a study; there is one study for each fold, and one for all data.")
    ] = 60,
    patience: Annotated[int, typer.Option(min=1, help="End a study after this many trials without a better one.")] = 30,
    folds: Annotated[int, typer.Option(min=1, max=20, help="Walk-forward splits.")] = 2,
    storage: Annotated[
        str, typer.Option(envvar="GPUBID_LAB_STORAGE", help="sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME.")
    ] = STORAGE,
    study: Annotated[str | None, typer.Option(help="The study to take part in; named by its data by default.")] = None,
    out: Annotated[Path | None, typer.Option(help="Strategy file to write the numbers to.")] = None,
    write: Annotated[bool, typer.Option("--write", help="If the file exists, start from it and change it.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search and of the bootstrap.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that share the study.")] = 1,
    as_json: session.JsonOption = False,
) -> None:
    """Search for a strategy's numbers within their declared bounds. The same command continues a stopped search."""
    extra.need(*extra.of_study(storage), "scipy", "tomlkit")
    from agent.lab.tuning import number_search
    from agent.lab.tuning import study as studies

    if out is not None and out.exists() and not write:
        exits.stop(exits.BAD_INPUT, [f"{out} exists; name another, or let --write change it"])
    order = number_search.Order(
        storage=storage,
        ends=studies.Ends(trials, patience),
        folds=folds,
        seed=seed,
        workers=workers,
        name=study,
        keys=tuple(keys.split(",")) if keys is not None else None,
    )
    result = _searched(problem, options, strategy, out, order)
    if as_json:
        session.print_json(document(result, problem, studies.shown(storage), seed))
    else:
        _show(result, studies.shown(storage), out)


def _searched(problem: str, options: Options, strategy: str, out: Path | None, order: "Order") -> "Tuning":
    """Return the result of the search, and write it to a file if one is named; or end with the mistake."""
    from agent.lab.tuning import number_search
    from agent.lab.tuning.study import StorageError

    built = tunable(problem, options)
    with running.honest():
        try:
            start = started(built, strategy, out, options)
            result = number_search.tune(start.problem, start.strategy, replace(order, beside=start.shipped))
            if out is not None:
                _write(result, out, start)
        except ValueError as error:
            exits.stop(exits.BAD_INPUT, [str(error)])
        except StorageError as error:
            exits.stop(exits.FAILED, [str(error)])
    return result


def tunable(problem: str, options: Options) -> "Tunable":
    """Return a problem whose strategies have numbers to search, or end with the mistake."""
    from agent.lab.bench.comparison import Tunable

    built = running.built(problem, options)
    if not isinstance(built, Tunable):
        exits.stop(exits.BAD_INPUT, [f"the strategies of {problem} have no numbers to search; name another problem"])
    return built


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a search: the problem with the numbers, the strategy of these numbers, and the file that has them.

    `shipped` are the strategy's shipped numbers, if the search starts from others.
    """

    problem: "Tunable"
    strategy: str
    file: Path | None
    shipped: "Params | None" = None


def started(built: "Tunable", strategy: str, out: Path | None, options: Options) -> Start:
    """Return the start of a search: the file to write if it exists, else an own file or the shipped numbers."""
    from agent import strategy_files

    file, own = out if out is not None and out.exists() else None, None
    if running.is_own(built, strategy):
        own = running.own(built, strategy, options)
        strategy, file = strategy_files.base(own), file or Path(own.source)
    shipped = built.params(strategy)
    if file is None or shipped is None:
        return Start(built, strategy, None)
    numbers = strategy_files.over(strategy, shipped if own is None else own.params, file)
    return Start(built.with_params(strategy, numbers), strategy, file, None if numbers == shipped else shipped)


def _write(result: "Tuning", out: Path, start: Start) -> None:
    from agent.lab.tuning import tuned_file

    try:
        tuned_file.write(out, text(result, start.file, out))
    except tuned_file.WriteError as error:
        exits.stop(exits.FAILED, [str(error)])


def text(result: "Tuning", started_from: Path | None, out: Path) -> str:
    """Return the text of the file that the search started from, own or shipped, with the tuned numbers.

    Its first line leads an editor to the schema from the folder of `out`.
    """
    from agent import strategy_files
    from agent.lab.tuning import tuned_file

    one = strategy_files.installed().get(result.strategy)
    file = started_from or (strategy_files.shipped_file(one) if one is not None else None)
    base = file.read_text() if file is not None and file.exists() else None
    schema = session.shipped_folder() / "deploy/schema/strategy.schema.json"
    return tuned_file.text(result, base and tuned_file.with_schema(base, out.parent, schema))


def document(result: "Tuning", problem: str, storage: str, seed: int) -> dict[str, Any]:
    """Return the result of a search for JSON."""
    return {
        "problem": problem,
        "strategy": result.strategy,
        **result.about,
        "seed": seed,
        "study": result.study,
        "storage": storage,
        "shipped": _plain({key: getattr(result.shipped, key) for key in result.changed}),
        "tuned": _plain(result.changed),
        "without_effect": list(result.inert),
        "held_out": _compared(result.held),
        "held_out_beside_shipped": _compared(result.beside),
        "folds": [_part(each) for each in (*result.parts, result.whole)],
    }


def _plain(numbers: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping of numbers, spans and switches
    from datetime import timedelta

    return {
        key: problems.duration_text(value) if isinstance(value, timedelta) else value for key, value in numbers.items()
    }


def _compared(one: "Compared | None") -> dict[str, Any] | None:
    from agent.lab.bench import interval

    if one is None:
        return None
    return {
        "runs": one.cases,
        "shipped_mean_cost": one.shipped.mean,
        "tuned_mean_cost": one.tuned.mean,
        "difference": one.difference,
        "ci95": interval.plain(one.interval),
        "shipped_late": one.shipped.late,
        "tuned_late": one.tuned.late,
    }


def _part(one: "Part") -> dict[str, Any]:
    return {
        "name": one.fold.name,
        "held_out_since": one.fold.since.isoformat() if one.fold.since is not None else None,
        "tuned": _plain(one.changed),
        "ended": one.found.ended,
        "trials": [{"number": each.number, "state": each.state, "score": each.score} for each in one.found.trials],
        "fitted": _compared(one.fitted),
        "held_out": _compared(one.held),
    }


def _show(result: "Tuning", storage: str, out: Path | None) -> None:
    from agent.lab.bench import interval

    table = session.table("numbers of", "on", "runs", "shipped $", "tuned $", "late", "difference", "95 %")
    for part in (*result.parts, result.whole):
        name = part.fold.name
        _add(table, name, "the data of the fit", part.fitted)
        if part.held is not None:
            _add(table, name, "what came later", part.held)
    _add(table, "all folds", "HELD OUT", result.held)
    if result.beside is not None:
        _add(table, "all folds", "HELD OUT, beside the shipped numbers", result.beside)
    session.show(table)
    for key, value in _plain(result.changed).items():
        before = _plain({key: getattr(result.shipped, key)})[key]
        session.say(f"{key} = {problems.literal(value)} (before {problems.literal(before)})")
    if result.inert:
        session.say(f"without effect here, and unchanged: {', '.join(result.inert)}")
    count = ", ".join(f"{part.fold.name} {len(part.found.trials)}" for part in (*result.parts, result.whole))
    session.say(f"study {result.study} in {storage}; trials: {count}")
    if result.held.interval[1] >= 0:
        sure = interval.as_text(result.held.interval)
        session.say(f"held out, no gain is proven: 95 % of the difference is {sure}")
    session.say(f"written to {out}" if out is not None else "nothing is written; name a file with --out")


def _add(table: Any, name: str, where: str, one: "Compared") -> None:  # noqa: ANN401 - a table of rich
    from agent.lab.bench import interval

    late = f"{one.tuned.late} (before {one.shipped.late})" if one.tuned.late or one.shipped.late else "0"
    means = f"{one.shipped.mean:.3f}", f"{one.tuned.mean:.3f}"
    session.add(
        table, name, where, str(one.cases), *means, late, f"{one.difference:+.3f}", interval.as_text(one.interval)
    )
