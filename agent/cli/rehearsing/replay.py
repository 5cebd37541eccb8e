"""`gpubid replay`: the decisions and the cost of a strategy over recorded time, beside the real ones."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import completion, exits, instants, ledger_questions, own_strategies, session, strategy_numbers

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.decide.strategy import Tuned
    from agent.lab.engine.own_replay import Replayed, Side

_SQLITE = b"SQLite format 3\0"
_WHICH_LEDGER = "name the SQLite file of a daemon, a backup of one, or what `gpubid rehearse --keep-ledger` wrote"


def replay(  # noqa: PLR0913 - one parameter per option
    ledger: Annotated[Path, typer.Argument(help="A ledger, in use or not, or a backup of one.")],
    strategy: Annotated[
        str,
        typer.Option(help="A strategy, or the path or stem of your own file.", autocompletion=completion.strategies),
    ],
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    directory: own_strategies.DirectoryOption = None,
    workload: Annotated[
        str | None, typer.Option(help="One workload; by default all of them.", autocompletion=completion.workloads)
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a number of the strategy; may repeat."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Begin at this time, UTC: 2d (ago) or 2026-11-20.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="End before this time, UTC.")] = None,
    step_seconds: Annotated[
        float, typer.Option(min=5, max=3600, help="Seconds between two plans if the ledger has no search.")
    ] = 300.0,
    as_json: session.JsonOption = False,
) -> None:
    """Run a strategy on paper over the time that a ledger recorded, and compare it with the real decisions."""
    settings, _ = session.read(config)
    _refuse_no_ledger(ledger)
    chosen = own_strategies.find(strategy, config, directory)
    workload = ledger_questions.name_of(settings, workload) if workload is not None else None
    chosen = strategy_numbers.changed(chosen, changes or [])
    span = instants.span(since, until)
    with session.waiting("replaying"):
        replayed = asyncio.run(_replayed(ledger, settings, chosen, workload, span, step_seconds))
    if as_json:
        session.print_json(replayed)
        return
    _print(replayed)


def _refuse_no_ledger(file: Path) -> None:
    """End with a message if a file is surely no ledger: it is the wrong name, and nothing is damaged."""
    try:
        with file.open("rb") as opened:
            is_sqlite = opened.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        exits.stop(exits.BAD_INPUT, [f"{file} cannot be read ({error.strerror}): {_WHICH_LEDGER}"])
    if not is_sqlite:
        exits.stop(exits.BAD_INPUT, [f"{file} is no ledger: {_WHICH_LEDGER}"])


async def _replayed(
    path: Path,
    settings: "Config",
    chosen: "Tuned",
    workload: str | None,
    span: tuple[datetime | None, datetime | None],
    step_seconds: float,
) -> dict[str, Any]:
    from agent.decide.paper import paper_market
    from agent.lab.engine import own_replay as replays
    from agent.lab.traces import ledger_history
    from agent.ledger.ledger_errors import LedgerError
    from agent.ledger.reader import open_reader

    try:
        reader = await open_reader(path)
        try:
            known = await ledger_history.read(reader, *span)
        finally:
            await reader.close()
    except LedgerError as error:
        exits.refused(error)
    step = timedelta(seconds=step_seconds)
    chosen_works = [work for work in settings.workloads if workload in {None, work.name}]
    results = [replays.replay(known, work, chosen, settings.limits, step) for work in chosen_works]
    if not any(results):
        exits.stop(
            exits.FAILED,
            [f"{path}: has no search of offers in that time, so there is nothing to replay; name another --since"],
        )
    rules = [
        *paper_market.RULES,
        "a recorded floor at or below a bid keeps the lease; a floor above the bid interrupts it",
    ]
    rules.append("a host is judged by its events on paper, not by the later record in the ledger")
    if known.assumed:
        rules.append(f"of {known.assumed} slices only the prices are known: they count as ordinary verified hosts")
    return {
        "strategy": chosen.name,
        "params_digest": chosen.digest,
        "looks": len(known.looks),
        "workloads": [_row(each) for each in results if each is not None],
        "rules": rules,
    }


def _row(one: "Replayed") -> dict[str, Any]:
    return {
        "workload": one.workload,
        "since": one.since.isoformat(),
        "until": one.until.isoformat(),
        "plans": one.plans,
        "actual": _side(one.actual),
        "replayed": _side(one.paper),
    }


def _side(side: "Side") -> dict[str, Any]:
    counted = side.counted
    return {
        "dollars": counted.spent.dollars,
        "paid_hours": counted.paid / 3.6e9,
        "useful_hours": counted.useful / 3.6e9,
        "lost_hours": counted.lost / 3.6e9,
        "interruptions": side.interruptions,
        "rents": side.rents,
        "dollars_per_useful_hour": counted.per_useful_hour,
    }


def _print(replayed: dict[str, Any]) -> None:
    table = session.table(
        "workload", "", "spent", "paid h", "useful h", "lost h", "interruptions", "rents", "$/useful h"
    )
    for one in replayed["workloads"]:
        for name, figures in (("what was done", one["actual"]), (f"{replayed['strategy']} on paper", one["replayed"])):
            each = figures["dollars_per_useful_hour"]
            session.add(
                table, one["workload"], name, f"${figures['dollars']:.4f}", f"{figures['paid_hours']:.2f}",
                f"{figures['useful_hours']:.2f}", f"{figures['lost_hours']:.2f}", f"{figures['interruptions']}",
                f"{figures['rents']}", "" if each is None else f"{each:.4f}",
            )  # fmt: skip
    session.show(table)
    for one in replayed["workloads"]:
        looks = f"{replayed['looks']} searches were recorded, {one['plans']} plans made"
        session.say(f"{one['workload']}: {one['since'][:16]} to {one['until'][:16]} UTC; {looks}")
    session.say("assumptions:")
    for rule in replayed["rules"]:
        session.say(f"  {rule}")
