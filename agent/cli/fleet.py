"""`gpubid fleet`: slots, leases, spend and doubts as the ledger knows them."""

import asyncio
from typing import TYPE_CHECKING, Any

from agent.cli import exits, session

if TYPE_CHECKING:
    from agent.config.settings import Config
    from agent.domain.lease import Lease
    from agent.ledger.recollection import Recollection


def fleet(config: session.ConfigOption = session.DEFAULT_CONFIG, as_json: session.JsonOption = False) -> None:
    """Show slots, leases, spend and doubts; reads the ledger only, also while the daemon runs."""
    from agent.ledger.errors import LedgerError

    settings, _ = session.read(config)
    try:
        shown = asyncio.run(_shown(settings))
    except LedgerError as error:
        exits.refused(error)
    if as_json:
        session.print_json(shown)
        return
    _print(shown)


async def _shown(config: "Config") -> dict[str, Any]:
    from agent.clock import SystemClock
    from agent.decide import meter
    from agent.ledger.reader import open_reader

    reader = await open_reader(config.ledger)
    try:
        now = SystemClock().now()
        known = await reader.recollection(now)
    finally:
        await reader.close()
    owed = meter.outstanding(known.leases, now)
    return {
        "now": now.isoformat(),
        "slots": _slots(config, known),
        "leases": [_lease(lease) for lease in known.leases],
        "in_doubt": [
            {
                "intent": intent.intent_id,
                "kind": intent.kind.value,
                "slot": str(intent.slot),
                "state": intent.state.value,
            }
            for intent in known.intents
        ],
        "spent_today_dollars": (known.total.today + owed).dollars,
        "spent_month_dollars": (known.total.month + owed).dollars,
        "dollars_per_hour": sum(lease.billing_rate.dollars for lease in known.leases),
        "resting": [
            {"what": f"{rest.scope}:{rest.key}", "until": rest.until.isoformat(), "after": rest.code}
            for rest in known.cooldowns
        ],
    }


def _slots(config: "Config", known: "Recollection") -> list[dict[str, Any]]:
    held = {lease.slot: lease for lease in known.leases if not lease.is_held}
    places = [place for work in config.workloads for place in work.places]
    return [
        {"slot": str(place), "lease": held[place].lease_id if place in held else None, "state": _state(held.get(place))}
        for place in places
    ]


def _state(lease: "Lease | None") -> str:
    return lease.state.value if lease is not None else "empty"


def _lease(lease: "Lease") -> dict[str, Any]:
    return {
        "lease": lease.lease_id,
        "slot": str(lease.slot),
        "state": lease.state.value,
        "is_held": lease.is_held,
        "market": lease.market,
        "instance": lease.instance_id,
        "host": lease.host_id,
        "gpu": lease.gpu,
        "gpus": lease.gpus,
        "tenure": lease.tenure.value,
        "gpu_dollars_per_hour": lease.gpu_rate.dollars,
        "disk_dollars_per_hour": lease.disk_rate.dollars,
        "billing_dollars_per_hour": lease.billing_rate.dollars,
        "since": lease.state_since.isoformat(),
        "interrupted_by": lease.interrupted_by.value if lease.interrupted_by else None,
    }


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
    for row in shown["in_doubt"]:
        session.say(f"in doubt: {row['kind']} {row['intent']} for {row['slot']}")
    for row in shown["resting"]:
        session.say(f"rests until {row['until'][:19]}: {row['what']}, after {row['after']}")
    today, month = shown["spent_today_dollars"], shown["spent_month_dollars"]
    session.say(f"today ${today:.4f}, this month ${month:.4f}, now ${shown['dollars_per_hour']:.4f} an hour")
