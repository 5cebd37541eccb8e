"""Registers one public key with one instance: record -> send -> resolve. It pays for nothing.

Invariants:
1. *Recorded* and *sent* are durable before the request leaves. A ledger that cannot be written sends nothing.
2. Only the market's positive word confirms. Anything else but a proof of refusal leaves doubt until the next listing.
   Only a reading of the instance's keys shows whether the key is there.
3. The order runs beside the cycles: no cycle waits for it. Just before the request leaves, the order asks once more
   whether it may be sent.
4. A request is ended after `ORDER_SECONDS`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import structlog

from agent.act import crashpoint
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Lease
from agent.domain.work import public_key
from agent.ledger.store import Ledger
from agent.markets import market_errors, port, send_permit

log = structlog.get_logger("gpubid.keys")

ORDER_SECONDS = 5.0
REFUSED = (
    market_errors.Rejected,
    market_errors.NotFound,
    market_errors.Throttled,
    market_errors.Unauthorized,
    market_errors.Unreachable,
)
"""The errors that prove that nothing was done."""


def intent_of(lease: Lease, key: str, intent_id: str, now: datetime) -> Intent:
    """Return the intent to register a key with a lease's instance."""
    return Intent(
        intent_id=intent_id,
        kind=IntentKind.REGISTER_KEY,
        state=IntentState.RECORDED,
        market=lease.market,
        slot=lease.slot,
        recorded_at=now,
        reason=f"register {public_key.fingerprint(key)} with the instance",
        lease_id=lease.lease_id,
        host_id=lease.host_id,
        instance_id=lease.instance_id,
    )


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """Sends registrations to one market, and records them."""

    ledger: Ledger
    keys: port.InstanceKeys
    now: Callable[[], datetime]

    async def carry_out(self, key: str, intent: Intent, why_not: Callable[[], str]) -> bool:
        """Send an intent unless `why_not` has a reason by then; return whether the market confirmed it.

        Raises:
            LedgerError: it could not be recorded, and was not sent; or its answer could not.
        """
        async with self.ledger.transaction() as tx:
            tx.record_intent(intent)
        crashpoint.reached("recorded", intent.kind.value)
        async with self.ledger.transaction() as tx:
            denied = why_not()
            state = IntentState.DENIED if denied else IntentState.SENT
            tx.advance_intent(intent.intent_id, state, at=self.now(), outcome=denied)
        if denied:
            return False
        crashpoint.reached("sent", intent.kind.value)
        with send_permit.under(self.ledger.permit()):
            state, outcome = await self._reply(intent.instance_id, key)
        crashpoint.reached("replied", intent.kind.value)
        async with self.ledger.transaction() as tx:
            tx.advance_intent(intent.intent_id, state, at=self.now(), outcome=outcome)
            if state is IntentState.CONFIRMED:
                tx.append_event(_event(intent, self.now()))
        crashpoint.reached("resolved", intent.kind.value)
        if state is not IntentState.CONFIRMED:
            log.warning("key.unregistered", lease=intent.lease_id, reason=outcome)
        return state is IntentState.CONFIRMED

    async def _reply(self, instance_id: str, key: str) -> tuple[IntentState, str]:
        """Send the request; return the state that its answer proves, and why."""
        try:
            async with asyncio.timeout(ORDER_SECONDS):
                await self.keys.add(instance_id, key)
        except REFUSED as error:
            return IntentState.REJECTED, f"{error.code}: {error}"
        except (market_errors.MarketError, TimeoutError) as error:
            return IntentState.IN_DOUBT, str(error)[:200] or f"no answer within {ORDER_SECONDS:g} s"
        return IntentState.CONFIRMED, "done"


def _event(intent: Intent, at: datetime) -> Event:
    return Event(
        at=at,
        kind=EventKind.LEASE_KEY_REGISTERED,
        workload=intent.slot.workload,
        slot=intent.slot.index,
        lease_id=intent.lease_id,
        intent_id=intent.intent_id,
        market=intent.market,
        host_id=intent.host_id,
        reason=intent.reason,
    )
