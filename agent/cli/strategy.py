"""`gpubid strategy`: list strategies, show their numbers, and show how two differ."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import completion, exits, own_strategies, session
from agent.cli.watch import learned
from agent.config import problems
from agent.decide import explain

if TYPE_CHECKING:
    from agent.cli.shared.number_facts import NumberFacts
    from agent.cycle import Pass
    from agent.decide.strategy import Tuned
    from agent.domain.fleet import Fleet

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
        str,
        typer.Argument(help="A strategy, or the path or stem of your own file.", autocompletion=completion.strategies),
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Show every number of a strategy as TOML, with its unit and range and whether your file changed it."""
    from agent.cli.shared import number_facts

    chosen = _found(config, name)
    facts = list(number_facts.of(chosen))
    if as_json:
        session.print_json({each.key: _as_json(each) for each in facts})
        return
    session.say(f"# {chosen.name}: {chosen.source or 'no file'}, digest {chosen.digest}")
    for each in facts:
        session.say(each.line)
    changed = [each.key for each in facts if each.is_changed]
    session.say(f"# changed: {', '.join(changed) or 'nothing, every number is as shipped'}")


app.command()(learned.learned)
app.command()(learned.reset)


@app.command()
def diff(
    name: Annotated[
        str,
        typer.Argument(help="A strategy, or the path or stem of your own file.", autocompletion=completion.strategies),
    ],
    other: Annotated[
        str, typer.Argument(help="The strategy to compare it with.", autocompletion=completion.strategies)
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    as_json: session.JsonOption = False,
) -> None:
    """Show the numbers that differ between two strategies, and the differences in the next plan."""
    from agent.cli.shared import number_facts

    strategies = {one: _found(config, one) for one in (name, other)}
    mine, theirs = ({each.key: each.value for each in number_facts.of(strategies[one])} for one in (name, other))
    keys = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    changes = {key: [mine.get(key), theirs.get(key)] for key in keys}
    seen = {one: _seen(config, tuned) for one, tuned in strategies.items()}
    plans = {one: [explain.sentence(decision) for decision in each.plan.decisions] for one, each in seen.items()}
    lacking = _lacking(seen[name].fleet, strategies[name])
    if as_json:
        session.print_json({"numbers": changes, "plans": plans, "lacking": lacking})
        return
    for key, (here, there) in changes.items():
        session.say(f"{key}: {_shown(here)} -> {_shown(there)}")
    session.say("the numbers are the same" if not changes else f"{len(changes)} number(s) differ")
    for one, sentences in plans.items():
        for sentence in sentences:
            session.say(f"plan with {one}: {sentence}")
    if lacking:
        session.say(lacking)


def _found(config: Path, name: str) -> "Tuned":
    """Return a strategy by its name, its stem or its path, or end with the known ones."""
    if own_strategies.is_path(name):
        return own_strategies.of_path(name)
    _, tuned = session.read(config)
    if name not in tuned:
        known = ", ".join(sorted(tuned))
        exits.stop(exits.BAD_INPUT, [f"there is no strategy {name!r}; known: {known}; {own_strategies.IN_A_FOLDER}"])
    return tuned[name]


def _as_json(each: "NumberFacts") -> dict[str, Any]:
    return {
        "value": each.value,
        "unit": each.unit,
        "range": each.span,
        "default": each.shipped,
        "is_changed": each.is_changed,
    }


def _shown(value: object) -> str:
    return "-" if value is None else problems.literal(value)


def _seen(config: Path, chosen: "Tuned") -> "Pass":
    """Return the next cycle's fleet and plan if every workload used this strategy."""
    from dataclasses import replace

    from agent.cli.watch.preview import preview

    settings, tuned = session.read(config)
    settings = replace(settings, workloads=tuple(replace(work, strategy=chosen.name) for work in settings.workloads))
    return preview(settings, {**tuned, chosen.name: chosen})


def _lacking(fleet: "Fleet", chosen: "Tuned") -> str:
    """Return why there are no offers on which two strategies could differ, or an empty text if there are some."""
    from agent.decide import needs

    if any(view.offers for view in fleet.markets.values()):
        return ""
    is_asked = needs.needs(fleet, tuned={chosen.name: chosen})
    why = "no offer was found" if is_asked else "no slot has a choice to make now, so no market was asked"
    return (
        f"there are no offers to compare on: {why}; compare on recorded time with `gpubid replay`, on many days with "
        "`gpubid lab bench --problem bids --strategies A,B`"
    )
