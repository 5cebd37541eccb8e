"""The leases that still bill, with the market's last answers to our releases, for a person who waits for a kill."""

from collections.abc import Iterable, Sequence
from typing import Any

from agent.cycle import Pass
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease
from agent.ledger.reader import Reader

ENDING = frozenset({IntentKind.RELEASE, IntentKind.PAUSE})
MOST_INTENTS = 500
"""The most recent attempts in which the last one of each lease is searched."""


async def shown(reader: Reader, leases: Iterable[Lease], doubts: Iterable[Intent], seen: Pass | None) -> dict[str, Any]:
    """Return the leases that bill as far as the market shows, and the paying intents that may bill, as JSON.

    `seen` is the last pass, which knows the leases that their market calls over without a proof.
    """
    billing = [lease for lease in leases if lease.bills is not Bills.NOTHING]
    tried = await reader.intents(MOST_INTENTS) if billing else ()
    return {
        "billing": [
            {**_row(lease, tried), "is_called_over": seen is not None and seen.fleet.is_called_over(lease)}
            for lease in billing
        ],
        "may_bill": [
            {"intent": doubt.intent_id, "kind": doubt.kind.value, "slot": str(doubt.slot), "market": doubt.market}
            for doubt in doubts
        ],
    }


def _row(lease: Lease, tried: Sequence[Intent]) -> dict[str, Any]:
    """Return one lease. `tried` is newest first."""
    last: dict[IntentKind, Intent] = {}
    for intent in tried:
        is_over = intent.state not in {IntentState.RECORDED, IntentState.SENT}
        if is_over and intent.lease_id == lease.lease_id and intent.kind in ENDING:
            last.setdefault(intent.kind, intent)
    return {
        "lease": lease.lease_id,
        "slot": str(lease.slot),
        "market": lease.market,
        "is_gpu": lease.bills is Bills.GPU_AND_DISK,
        "dollars_per_hour": lease.billing_rate.dollars,
        "tried": [f"{kind.value} {intent.state.value} {intent.outcome}".rstrip() for kind, intent in last.items()],
    }
