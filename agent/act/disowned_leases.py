"""Records that a lease never was ours: it ends, nothing is sent, and its rent is in doubt again."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import structlog
from msgspec.structs import replace

from agent.decide.facts import Fact, LeaseDisowned
from agent.decide.reconcile import ownership
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, LeaseState
from agent.ledger.store import Ledger
from agent.ledger.transaction import Transaction

log = structlog.get_logger("gpubid.disowned_leases")


async def rents(ledger: Ledger, facts: Iterable[Fact]) -> Mapping[str, Intent]:
    """Return the intents, by id, of the disowned leases in `facts`."""
    ids = {fact.lease.intent_id for fact in facts if isinstance(fact, LeaseDisowned)}
    if not ids:
        return {}
    reader = await ledger.reader()
    return {intent.intent_id: intent for intent in await reader.intents(ids=ids)}


def write(tx: Transaction, fact: LeaseDisowned, known: Mapping[str, Intent], now: datetime) -> None:
    """End the lease and put its rent in doubt again. A listing will show by its label which instance was rented."""
    lease = fact.lease
    ended = replace(
        lease,
        state=LeaseState.ENDED,
        ended_at=now,
        state_since=now,
        bills=Bills.NOTHING,
        run_since=None,
        end_reason=ownership.NEVER_OURS,
    )
    tx.update_lease(ended)
    intent = known.get(lease.intent_id)
    if intent is not None and not intent.is_open:
        tx.reopen_intent(intent, at=now, outcome=fact.sentence)
    log.error(EventKind.LEASE_DISOWNED, lease=lease.lease_id, intent=lease.intent_id)
    tx.append_event(
        Event(
            at=now,
            kind=EventKind.LEASE_DISOWNED,
            workload=lease.slot.workload,
            slot=lease.slot.index,
            lease_id=lease.lease_id,
            intent_id=lease.intent_id,
            market=lease.market,
            host_id=lease.host_id,
            reason_code=ownership.NEVER_OURS,
            reason=fact.sentence,
        )
    )
