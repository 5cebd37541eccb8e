"""`gpubid strategy`: list strategies, show their numbers, and show how two differ."""

from datetime import timedelta
from typing import Annotated, Any

import typer

from agent.cli.shared import completion, exits, session
from agent.cli.watch import learned
from agent.config import problems

app = typer.Typer(no_args_is_help=True, help="List, show and compare strategies.")


@app.command("list")
def list_(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """List the strategies that a workload may name: the shipped ones and your own files."""
    settings, tuned = session.read(config)
    used = {
        work.strategy: [w.name for w in settings.workloads if w.strategy == work.strategy]
        for work in settings.workloads
    }
    rows = [
        {"name": name, "digest": one.digest, "source": one.source, "workloads": used.get(name, [])}
        for name, one in sorted(tuned.items())
    ]
    if as_json:
        session.print_json(rows)
        return
    table = session.table("name", "digest", "used by", "file")
    for row in rows:
        session.add(table, str(row["name"]), str(row["digest"])[:12], ", ".join(row["workloads"]), str(row["source"]))
    session.show(table)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A strategy, or the stem of one of your files.", autocompletion=completion.strategies)
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Show every number of a strategy."""
    numbers = _numbers(config, name)
    if as_json:
        session.print_json(numbers)
        return
    for key, value in numbers.items():
        session.say(f"{key} = {problems.literal(value)}")


app.command()(learned.learned)
app.command()(learned.reset)


@app.command()
def diff(
    name: Annotated[
        str, typer.Argument(help="A strategy, or the stem of one of your files.", autocompletion=completion.strategies)
    ],
    other: Annotated[str, typer.Argument(help="What to compare it with.", autocompletion=completion.strategies)],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Show which numbers differ between two strategies, and what the next plan would do differently."""
    mine, theirs = _numbers(config, name), _numbers(config, other)
    keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    changes = {key: [mine.get(key), theirs.get(key)] for key in keys}
    plans = {one: _planned(config, one) for one in (name, other)}
    if as_json:
        session.print_json({"numbers": changes, "plans": plans})
        return
    for key, (here, there) in changes.items():
        session.say(f"{key}: {_shown(here)} -> {_shown(there)}")
    session.say("the numbers are the same" if not changes else f"{len(changes)} number(s) differ")
    for one, sentences in plans.items():
        for sentence in sentences:
            session.say(f"plan with {one}: {sentence}")


def _numbers(config: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - the path typer hands in
    _, tuned = session.read(config)
    if name not in tuned:
        exits.stop(exits.BAD_INPUT, [f"there is no strategy {name!r}; known: {', '.join(sorted(tuned))}"])
    return {key: _as_written(value) for key, value in tuned[name].params.model_dump().items()}


def _as_written(value: Any) -> Any:  # noqa: ANN401 - whatever a strategy reckons with
    """Return a number as its file has it: durations such as "45m"."""
    return problems.duration_text(value) if isinstance(value, timedelta) else value


def _shown(value: object) -> str:
    return "-" if value is None else problems.literal(value)


def _planned(config: Any, name: str) -> list[str]:  # noqa: ANN401 - the path typer hands in
    """Return what the next cycle would do if every workload ran on `name`."""
    from dataclasses import replace

    from agent.cli.watch.preview import preview
    from agent.decide import explain

    settings, tuned = session.read(config)
    settings = replace(settings, workloads=tuple(replace(work, strategy=name) for work in settings.workloads))
    return [explain.sentence(made) for made in preview(settings, tuned).plan.decisions]
