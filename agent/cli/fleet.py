"""`gpubid fleet`: slots, leases, spend and doubts as the ledger knows them."""

import asyncio
from typing import TYPE_CHECKING, Any

from agent.cli import exits, session, wire

if TYPE_CHECKING:
    from agent.config.settings import Config


def fleet(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Show slots, leases, spend and doubts; reads the ledger only, also while the daemon runs."""
    from agent.ledger.errors import LedgerError

    settings, _ = session.read(config)
    try:
        found = asyncio.run(shown(settings))
    except LedgerError as error:
        exits.refused(error)
    if as_json:
        session.print_json(found)
        return
    _print(found)


async def shown(config: "Config") -> dict[str, Any]:
    """Return what there is, from the ledger or from the daemon that holds it."""
    from agent.clock import SystemClock
    from agent.ledger.reader import open_reader
    from agent.web import views

    if not session.may_read(config.ledger):
        told = await wire.get(config, "/fleet")
        if told is not None:
            return dict(told)
    reader = await open_reader(config.ledger)
    try:
        now = SystemClock().now()
        known, decided = await reader.recollection(now), await reader.decisions()
    finally:
        await reader.close()
    return views.fleet(config.workloads, known, decided, now)


def _print(shown: dict[str, Any]) -> None:
    table = session.table("slot", "state", "lease", "host", "GPU", "tenure", "bills now", "since")
    for row in shown["leases"]:
        state = f"{row['state']} (held)" if row["is_held"] else row["state"]
        bills = f"${row['billing_dollars_per_hour']:.4f}/h"
        gpu = f"{row['gpus']}x {row['gpu']}"
        session.add(table, row["slot"], state, row["lease"], row["host"], gpu, row["tenure"], bills, row["since"][:19])
    for row in shown["slots"]:
        if row["lease"] is None:
            session.add(table, row["slot"], "empty", "", "", "", "", "", "")
    session.show(table)
    for row in shown["slots"]:
        if row["why"]:
            session.say(f"{row['slot']}: {row['why']}")
    for row in shown["in_doubt"]:
        session.say(f"in doubt: {row['kind']} {row['intent']} for {row['slot']}")
    for row in shown["resting"]:
        session.say(f"rests until {row['until'][:19]}: {row['what']}, after {row['after']}")
    today, month = shown["spent_today_dollars"], shown["spent_month_dollars"]
    session.say(f"today ${today:.4f}, this month ${month:.4f}, now ${shown['dollars_per_hour']:.4f} an hour")
