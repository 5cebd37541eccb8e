"""Ends the ledger's leases on a simulated market that began again: no listing will ever show them."""

from collections.abc import Collection
from datetime import datetime

import structlog
from msgspec.structs import replace

from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

log = structlog.get_logger(__name__)
CODE = "market_began_anew"
WHY = "the simulated market began anew: its file was lost, or its climate was edited"


async def end_leases(ledger: Ledger, markets: Collection[str], now: datetime) -> None:
    """End the leases and close the doubts of these markets; time after the last listing is charged to nobody."""
    known = ledger.recollection(now)
    leases = [lease for lease in known.leases if lease.market in markets and lease.is_open]
    intents = [intent for intent in known.intents if intent.market in markets and intent.is_open]
    if not leases and not intents:
        return
    async with ledger.transaction() as tx:
        for lease in leases:
            _end(tx, lease, now)
        for intent in intents:
            tx.advance_intent(intent.intent_id, IntentState.VOID, at=now, outcome=WHY)
    log.warning(EventKind.MARKET_BEGAN_ANEW, leases=len(leases), intents=len(intents), reason=WHY)


def _end(tx: Transaction, lease: Lease, now: datetime) -> None:
    ended = replace(
        lease,
        state=LeaseState.ENDED,
        bills=Bills.NOTHING,
        state_since=now,
        ended_at=now,
        end_reason=CODE,
        run_since=None,
    )
    tx.update_lease(ended)
    tx.append_event(
        Event(
            at=now,
            kind=EventKind.LEASE_ENDED,
            market=lease.market,
            workload=lease.slot.workload,
            slot=lease.slot.index,
            lease_id=lease.lease_id,
            host_id=lease.host_id,
            reason_code=CODE,
            reason=WHY,
        )
    )
