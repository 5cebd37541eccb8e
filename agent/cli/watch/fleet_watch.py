"""`gpubid fleet --watch`: the table again after each change of the feed, or one line of JSON for each change."""

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.cli.shared import exits, last_good, session
from agent.cli.shared.daemon_socket import Refused
from agent.cli.watch import feed_client
from agent.decide.operators import notices


def watch(file: Path, *, as_json: bool) -> None:
    """Print the fleet after each change until it is interrupted. Without a daemon, end with a message."""
    import asyncio

    read = last_good.read(file)
    place = read.place if isinstance(read, last_good.Broken) else read[0]
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(_watch(feed_client.of(place), as_json=as_json))
        except Refused as error:
            exits.stop(exits.FAILED, [str(error)])


async def _watch(feed: feed_client.FeedClient, *, as_json: bool) -> None:
    has_begun = is_gone = False
    async with contextlib.aclosing(feed.messages()) as messages:
        async for message in messages:
            if message.event == "fleet":
                has_begun, is_gone = True, False
                _print(message.body, as_json=as_json)
            elif message.event == "gone" and not is_gone:
                is_gone = True
                why = message.body["sentence"]
                is_standby = why != feed_client.GONE
                if not has_begun:
                    raise Refused(why if is_standby else f"{why}; without --watch its last state is shown")
                ended = why if is_standby else "the daemon ended; waiting until it answers again"
                sys.stderr.write(f"gpubid: {ended}\n")


def _print(fleet: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(fleet) + "\n")
    else:
        _print_table(fleet)
    sys.stdout.flush()


def _print_table(fleet: Mapping[str, Any]) -> None:
    session.say(f"fleet at {fleet['as_of'][:19]}Z: {fleet['running']} of {fleet['wanted']} slot(s) run")
    for alert in fleet["alerts"]:
        session.say(f"! {alert['about']}: {alert['sentence']}")
    for line in leader(fleet):
        session.say(line)
    table = session.table("slot", "state", "host", "GPU", "$/h", "bid", "floor", "ask", "useful", "decision")
    for slot in fleet["slots"]:
        session.add(table, *cells(slot))
    session.show(table)
    session.say(money(fleet["money"]))
    session.say("")


def leader(fleet: Mapping[str, Any]) -> list[str]:
    """Return who leads, since when and with which last beat; nothing where the ledger is a file."""
    return [f"{note['about']}: {note['sentence']}" for note in fleet["notes"] if note["code"] == notices.LEADS]


def cells(slot: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a slot's row: slot, state, host, GPU, $/h, bid, floor, ask, useful share and decision."""
    decision = slot["decision"]
    return (
        slot["slot"] if slot["is_configured"] else f"{slot['slot']} (no slot)",
        slot["state"],
        f"{slot['market']}/{slot['host']}" if slot["host"] else "-",
        f"{slot['gpus']}x {slot['gpu']}" if slot["gpu"] else "-",
        f"{slot['dollars_per_hour']:.4f}",
        *(_rate(slot[name]) for name in ("bid", "floor", "ask")),
        "-" if slot["useful_share"] is None else f"{slot['useful_share']:.0%}",
        f"{decision['kind']} {decision['code']}" if decision else "-",
    )


def money(found: Mapping[str, Any]) -> str:
    """Return spend against caps, the rate and the runway as one line."""
    parts = [
        f"today ${found['today_dollars']:.4f}{_of(found['day_cap_dollars'])}",
        f"month ${found['month_dollars']:.4f}{_of(found['month_cap_dollars'])}",
        f"now ${found['dollars_per_hour']:.4f}/h{_of(found['hour_cap_dollars'])}",
    ]
    hours = found["runway_hours"]
    if hours is not None:
        parts.append(f"runway {span(hours)} ({found['runway_ends']})")
    return ", ".join(parts)


def span(hours: float) -> str:
    """Return hours as days, hours or minutes."""
    if hours < 1:
        return f"{hours * 60:.0f}m"
    return f"{hours:.1f}h" if hours < 48 else f"{hours / 24:.0f}d"  # noqa: PLR2004 - two days


def _of(cap: float | None) -> str:
    return "" if cap is None else f" of ${cap:.2f}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
