"""Shadows beside the live strategies, as plain values: what each would have cost on paper."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from agent.decide import meter, paper
from agent.domain.account import Line
from agent.domain.event import Event
from agent.domain.lease import Lease
from agent.domain.money import total
from agent.domain.shadow import Counted, ShadowAccount, ShadowDecision
from agent.ledger.events import INTERRUPTED
from agent.ledger.reader import Reader

MOST_LOSSES = 100_000


async def shown(reader: Reader, leases: Sequence[Lease], now: datetime, workload: str | None = None) -> dict[str, Any]:
    """Return every shadow, of one workload only if it is named, beside what the live strategy came to since."""
    accounts = [each for each in await reader.shadows() if workload in {None, each.workload}]
    if not accounts:
        return {"now": now.isoformat(), "shadows": [], "rules": list(paper.RULES)}
    lines = await reader.lines()
    since = min(each.since for each in accounts)
    losses = await reader.events(since=since, kinds=(INTERRUPTED,), limit=MOST_LOSSES)
    last = await reader.last_shadow_decisions()
    rows = [_row(each, _live(each, lines, leases), losses, last) for each in accounts]
    return {"now": now.isoformat(), "shadows": rows, "rules": list(paper.RULES)}


def _live(account: ShadowAccount, lines: Sequence[Line], leases: Sequence[Lease]) -> Counted:
    """Return what a workload had really come to when its shadow was last seen: a ledger may be read long after."""
    mine = [line for line in lines if line.workload == account.workload]
    owed = meter.outstanding((held for held in leases if held.slot.workload == account.workload), account.seen_at)
    return Counted(
        total(line.amount for line in mine) + owed,
        sum(line.paid for line in mine),
        sum(line.useful for line in mine),
        sum(line.lost for line in mine),
    )


def _row(
    account: ShadowAccount, live: Counted, losses: Sequence[Event], last: Sequence[ShadowDecision]
) -> dict[str, Any]:
    lost = Counter(event.workload for event in losses if event.at >= account.since)
    return {
        "workload": account.workload,
        "strategy": account.strategy,
        "since": account.since.isoformat(),
        "seen_at": account.seen_at.isoformat(),
        "paper": _figures(account.counted, account.interruptions),
        "live": _figures(live.less(account.live_before), lost[account.workload]),
        "rents": account.rents,
        "last": [
            decision(made)
            for made in last
            if (made.slot.workload, made.strategy) == (account.workload, account.strategy)
        ],
    }


def decision(made: ShadowDecision) -> dict[str, Any]:
    """Return what a shadow decided."""
    return {
        "at": made.at.isoformat(),
        "slot": str(made.slot),
        "strategy": made.strategy,
        "kind": made.kind,
        "code": made.code,
        "sentence": made.sentence,
        "host": made.host_id,
    }


def _figures(counted: Counted, interruptions: int) -> dict[str, Any]:
    return {
        "dollars": counted.spent.dollars,
        "paid_hours": counted.paid / 3.6e9,
        "useful_hours": counted.useful / 3.6e9,
        "lost_hours": counted.lost / 3.6e9,
        "interruptions": interruptions,
        "dollars_per_useful_hour": counted.per_useful_hour,
    }
