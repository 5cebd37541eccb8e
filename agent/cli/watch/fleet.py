"""`gpubid fleet`: slots, leases, spend and doubts from the ledger."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent.cli.shared import ledger_questions, session, side_by_side
from agent.cli.watch import fleet_watch
from agent.domain.record.event_kind import EventKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime

    from agent.config.settings import Config
    from agent.decide.operators.notices import Notice
    from agent.ledger.memory import Recollection
    from agent.ledger.reader import Reader


MOST_YEARS = 5
"""A longer cooldown never ends by itself."""


def fleet(
    config: session.ConfigOption = session.DEFAULT_CONFIG,
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Print again after each change; with --json, one line for each change."),
    ] = False,
    as_json: session.JsonOption = False,
) -> None:
    """Show slots, leases, spend and doubts: from the daemon if one runs, else from the ledger."""
    if watch:
        fleet_watch.watch(config, as_json=as_json)
        return
    answer = shown(config)
    if as_json:
        session.print_json(answer)
        return
    _print(answer)


def shown(file: Path) -> dict[str, Any]:
    """Return the fleet's document, or end with a message."""
    # The daemon knows more than its ledger: the right time, and the reasons why it may not pay.
    return dict(ledger_questions.ask(file, "/fleet", _shown, first=True))


async def _shown(config: "Config", reader: "Reader") -> dict[str, Any]:
    """Return the fleet's document from the ledger, without a daemon."""
    from agent.web.reading import verb_json

    now = await ledger_questions.present(reader)
    known, decided = await reader.recollection(now), await reader.decisions()
    notices = await last_notices(reader, known, now)
    return verb_json.fleet(config.workloads, known, decided, now, notices, config.limits)


async def last_notices(reader: "Reader", known: "Recollection", now: "datetime") -> "list[Notice]":
    """Return the notices about the whole fleet that the ledger alone shows, without a daemon."""
    from agent.act import bill_check
    from agent.decide.operators import bill_drift, unaccounted_costs

    return [
        *await _without_daemon(reader, known),
        *unaccounted_costs.after_kill(unaccounted_costs.remaining(known, now), now),
        *bill_drift.notices(await bill_check.last(reader, now)),
    ]


async def _without_daemon(reader: "Reader", known: "Recollection") -> "list[Notice]":
    """Return the notice that no daemon runs, and the reason if the last daemon refused to run; or who leads."""
    from agent.decide.operators import notices
    from agent.decide.operators.notices import Notice

    leader = await reader.leading()
    if leader is not None:
        shown = leader.place, leader.since, leader.beat_age_seconds
        there = notices.of_leader(*shown, is_shown=leader.is_shown)
        return [replace(there, sentence=f"{there.sentence}; no daemon runs on this box")]
    bills = "; open leases go on billing" if known.leases else ""
    sentence = f"none runs on this ledger, so this is its last state{bills}: `gpubid run` continues"
    if await reader.rehearsed_until() is not None:
        sentence = "a rehearsal wrote this ledger, so this is its last state, and nothing bills"
    ends = [event for event in await reader.events(None, None, None, [], 1) if event.kind == EventKind.DAEMON_REFUSED]
    refused = [Notice(event.market or "daemon", event.reason_code, event.reason) for event in ends]
    return [Notice("daemon", "not_running", sentence), *refused]


def _print(shown: dict[str, Any]) -> None:
    table = session.table("slot", "state", "lease", "host", "GPU", "tenure", "bills now", "since")
    for row in _in_order(shown):
        if "gpu" not in row:
            session.add(table, row["slot"], "empty", "", "", "", "", "", "")
            continue
        state = f"{row['state']} (held)" if row["is_held"] else row["state"]
        bills = f"${row['billing_dollars_per_hour']:.4f}/h"
        gpu = f"{row['gpus']}x {row['gpu']}"
        session.add(table, row["slot"], state, row["lease"], row["host"], gpu, row["tenure"], bills, row["since"][:19])
    side_by_side.show_rows(table)
    for line in _sentences(shown):
        session.say(line)
    for row in shown["credit"]:
        session.say(row["sentence"])
    today, month = shown["spent_today_dollars"], shown["spent_month_dollars"]
    at = shown["now"][:19].replace("T", " ")
    session.say(
        f"as of {at} UTC: today ${today:.4f}, this month ${month:.4f}, now ${shown['dollars_per_hour']:.4f} an hour"
    )


def _in_order(shown: dict[str, Any]) -> "Iterator[dict[str, Any]]":
    """Yield leases slot by slot as configured, and last the leases without a slot.

    An empty slot is a row of its own, except in an array.
    """
    places = {row["slot"]: row for row in shown["slots"]}
    arrays = _of_many(shown)
    for place, slot in places.items():
        mine = [row for row in shown["leases"] if row["slot"] == place]
        if slot["lease"] is None and place.partition("/")[0] not in arrays:
            yield slot
        yield from mine
    yield from (row for row in shown["leases"] if row["slot"] not in places)


def _of_many(shown: dict[str, Any]) -> set[str]:
    """Return the workloads whose empty slots share a line: arrays, and those with a demand."""
    return {row["workload"] for row in (*shown["arrays"], *shown["demands"])}


def _sentences(shown: dict[str, Any]) -> "Iterator[str]":
    """Yield the notes below the table: first about the whole fleet, then slot by slot, then cooldowns."""
    yield from (f"{row['about']}: {row['sentence']}" for row in shown["notices"])
    yield from _reasons(shown)
    rows = (*shown["arrays"], *shown["demands"], *shown["run_times"], *shown["services"])
    yield from (f"{row['workload']}: {row['sentence']}" for row in rows if row["sentence"])
    yield from (f"in doubt: {row['kind']} {row['intent']} for {row['slot']}" for row in shown["in_doubt"])
    from agent.act.orders import order_grounds

    arrays = {row["workload"] for row in shown["arrays"]}
    known = {row["what"] for row in shown["holds_and_cooldowns"]}
    for row in shown["holds_and_cooldowns"]:
        kind, _, target = row["what"].partition(":")
        # What waited for a person, and was called done by him, waits no more.
        is_settled = kind == "held" and f"done:{target}" in known
        if kind not in order_grounds.MARKS and not is_settled and not _is_done_task(row["what"], arrays):
            yield kept_back(row, shown["now"])


def _is_done_task(what: str, arrays: "Collection[str]") -> bool:
    """Return whether a hold only says that one task of an array is done; the array's own line counts it."""
    scope, _, target = what.partition(":slot:")
    return scope == "done" and target.rpartition("/")[0] in arrays


def _reasons(shown: dict[str, Any]) -> "Iterator[str]":
    """Yield why slots do not run. Slots of one array with the same reason share a line, and the done ones have none."""
    arrays = _of_many(shown)
    together: dict[tuple[str, str], list[str]] = {}
    for row in shown["slots"]:
        name = row["slot"].partition("/")[0]
        is_done = row["why"].startswith((f"slot:{row['slot']} is done ", f"workload:{name} is done "))
        if row["why"] and not (name in arrays and is_done):
            together.setdefault((name if name in arrays else row["slot"], row["why"]), []).append(row["slot"])
    for (_, why), places in together.items():
        others = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"{places[0]}{others}: {why}"


def kept_back(row: "Mapping[str, Any]", now: str) -> str:
    """Return a hold, a cooldown or a count as a line: its end, its meaning, its cause, and the command that ends it."""
    from agent.decide.operators import hold_words

    what, ground = row["what"], row["after"]
    spoken = f"{hold_words.kind(what)} {_span(row['until'], now)}: {hold_words.meaning(what)}"
    cause = f"by {ground}" if ground.startswith("uid ") else f"after {ground}"
    return f"{spoken}, {cause}; {hold_words.way_out(what)}"


def _span(until: str, now: str) -> str:
    """Return how long a hold or a cooldown lasts."""
    is_for_good = int(until[:4]) - int(now[:4]) > MOST_YEARS
    return "until it is lifted" if is_for_good else f"until {until[:19]}Z"
