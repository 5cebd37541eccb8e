"""`gpubid status`: one screen with problems, running slots and spend against the caps."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from agent.cli.shared import exits, ledger_questions, session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.ledger.reader import Reader

WINDOWS = {"per_hour": "an hour", "per_day": "today", "per_month": "this month", "total": "in all"}


def status(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Show problems, running slots and spend against the caps. Exit code 1 if something is wrong."""
    answer = shown(config)
    if as_json:
        session.print_json(answer)
    else:
        _print(answer)
    if not answer["is_well"]:
        raise typer.Exit(exits.FAILED)


def shown(file: Path) -> dict[str, Any]:
    """Return the state of the whole fleet, or end with a message."""
    return dict(ledger_questions.ask(file, "/status", _shown, first=True))


async def _shown(config: "Config", reader: "Reader") -> dict[str, Any]:
    """Return the last state in the ledger, for the case that no daemon answers."""
    from agent.cli.watch import fleet
    from agent.web.reading import status_json

    now = await ledger_questions.present(reader)
    known, decided = await reader.recollection(now), await reader.decisions()
    notices = await fleet.last_notices(reader, known, now)
    return status_json.shown(config.workloads, known, decided, now, notices, config.limits)


def _print(answer: dict[str, Any]) -> None:
    session.say("well" if answer["is_well"] else f"not well: {len(answer['troubles'])} thing(s) to look at")
    for row in answer["troubles"]:
        session.say(f"  {row['about']}: {row['sentence']}")
    for row in answer["notes"]:
        session.say(f"note: {row['about']}: {row['sentence']}")
    for row in answer["markets"]:
        session.say(f"market {row['market']}: {_age(row)}")
    session.say(f"{answer['running']} of {answer['wanted']} slot(s) run")
    table = session.table("slot", "state", "host", "GPU", "$/h", "why", folded="why")
    for row in answer["slots"]:
        gpu = f"{row['gpus']}x {row['gpu']}" if row["gpu"] else ""
        host = f"{row['market']}/{row['host']}" if row["host"] else ""
        session.add(table, row["slot"], row["state"], host, gpu, f"{row['dollars_per_hour']:.4f}", row["why"])
    session.show(table)
    if answer["in_doubt"]:
        session.say(f"{answer['in_doubt']} order(s) in doubt or under way: `gpubid fleet` shows them")
    _print_money(answer)


def _print_money(answer: dict[str, Any]) -> None:
    today, month = answer["spent_today_dollars"], answer["spent_month_dollars"]
    at = answer["now"][:19].replace("T", " ")
    session.say(
        f"as of {at} UTC: today ${today:.4f}, this month ${month:.4f}, now ${answer['dollars_per_hour']:.4f} an hour"
    )
    for row in answer["caps"]:
        name = f"{row['scope']} {row['name']}" if row["name"] else "all"
        part = f" ({row['used_dollars'] / row['cap_dollars']:.0%})" if row["cap_dollars"] else ""
        used = f"${row['used_dollars']:.4f} committed of ${row['cap_dollars']:.2f}{part}"
        session.say(f"cap {WINDOWS[row['window']]}, {name}: {used}")
    for row in answer["credit"]:
        session.say(row["sentence"])


def _age(row: dict[str, Any]) -> str:
    if row["listed_seconds_ago"] is None:
        return "not read yet"
    return f"{'read' if row['is_fresh'] else 'not readable, last read'} {row['listed_seconds_ago']:.0f} s ago"
