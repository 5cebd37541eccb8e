"""Shadows beside the live strategies, as plain values: the cost of each on paper."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from agent.decide.accounting import meter
from agent.decide.paper import paper_market, shadow
from agent.domain.record.lease import Lease
from agent.domain.record.shadow_account import Counted, ShadowAccount, ShadowDecision
from agent.ledger.reader import Reader
from agent.ledger.tables.event_rows import INTERRUPTED


async def shown(reader: Reader, leases: Sequence[Lease], now: datetime, workload: str | None = None) -> dict[str, Any]:
    """Return every shadow, or those of one workload, beside the live strategy's figures of the same time."""
    accounts = [each for each in await reader.shadows() if workload in {None, each.workload}]
    last = await reader.last_shadow_decisions() if accounts else []
    sums = {day: await reader.sums(day, of_leases_only=True) for day in {each.seen_at.date() for each in accounts}}
    rows = [await _row(each, reader, sums[each.seen_at.date()], leases, last) for each in accounts]
    return {"now": now.isoformat(), "shadows": rows, "rules": list(paper_market.RULES)}


async def _row(
    account: ShadowAccount,
    reader: Reader,
    sums: Mapping[str, Counted],
    leases: Sequence[Lease],
    last: Sequence[ShadowDecision],
) -> dict[str, Any]:
    live = _live(account, sums, leases).less(account.live_before)
    lost = await reader.count_events(INTERRUPTED, account.workload, account.since, account.seen_at)
    return {
        "workload": account.workload,
        "strategy": account.strategy,
        "digest": shadow.digest_of(account.position),
        "since": account.since.isoformat(),
        "seen_at": account.seen_at.isoformat(),
        "paper": _figures(account.counted, account.interruptions),
        "live": _figures(live, lost),
        "rents": account.rents,
        "last": [
            decision(each)
            for each in last
            if (each.slot.workload, each.strategy) == (account.workload, account.strategy)
        ],
    }


def _live(account: ShadowAccount, sums: Mapping[str, Counted], leases: Sequence[Lease]) -> Counted:
    """Return a workload's real figures up to the shadow's last cycle, or to the end of that day.

    The ledger keeps a shadow that no configuration names any more, and may be read long after.
    """
    mine = (lease for lease in leases if lease.slot.workload == account.workload)
    return sums.get(account.workload, Counted()).owing(meter.outstanding(mine, account.seen_at))


def decision(shadow_decision: ShadowDecision) -> dict[str, Any]:
    """Return the decisions of a shadow."""
    return {
        "at": shadow_decision.at.isoformat(),
        "slot": str(shadow_decision.slot),
        "strategy": shadow_decision.strategy,
        "kind": shadow_decision.kind,
        "code": shadow_decision.code,
        "sentence": shadow_decision.sentence,
        "host": shadow_decision.host_id,
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
