"""The intent of a decision, recorded before its request leaves, and again if that waits; and those a crash left."""

from collections.abc import Container
from dataclasses import replace
from datetime import datetime

from agent.clock import Clock
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.work import kept_terms
from agent.domain.work.decision import Decision, Hold, Rebid, Rent, kind_of
from agent.domain.work.workload import Workload
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.markets import send_permit


def of(decision: Decision, work: Workload | None, intent_id: str, now: datetime, run: GuardRun | None) -> Intent:
    """Return the intent of a decision; `run` is the run of its slot that a rented guard is started for."""
    intent = Intent(
        intent_id=intent_id,
        kind=kind_of(decision),
        state=IntentState.RECORDED,
        market="",
        slot=decision.slot if isinstance(decision, Rent | Hold) else decision.lease.slot,
        recorded_at=now,
        reason=decision.reason.sentence,
    )
    if isinstance(decision, Rent):
        offer = decision.offer
        return replace(
            intent,
            market=offer.market,
            offer_id=offer.offer_id,
            host_id=offer.host_id,
            instance_id=decision.kept.instance_id if decision.kept is not None else "",
            tenure=decision.tenure,
            price=decision.bid,
            rate=decision.rate,
            disk_gb=work.disk_gb if work else 0.0,
            gpu=offer.gpu,
            gpus=offer.gpus,
            guard_run=None if run is None else run.run,
            guard_terms=None if run is None else kept_terms.text(work),
        )
    if isinstance(decision, Hold):
        return intent
    lease = decision.lease
    price = decision.bid if isinstance(decision, Rebid) else None
    rate = (price or lease.most_gpu_rate) + lease.disk_rate
    return replace(
        intent,
        market=lease.market,
        lease_id=lease.lease_id,
        instance_id=lease.instance_id,
        host_id=lease.host_id,
        tenure=lease.tenure,
        price=price,
        rate=rate,
        disk_gb=lease.disk_gb,
    )


def renewal(intent: Intent, ledger: Ledger, clock: Clock) -> send_permit.Renewal | None:
    """Return what records that a paying request leaves only now, after its turn; None where no permit becomes too old.

    On a server another daemon may settle what was sent long ago. Only a commit of now shows that none has.
    """
    if not ledger.is_served or not intent.kind.is_paying:
        return None

    async def recorded() -> send_permit.Permit:
        permit = ledger.permit(is_paying=True)
        try:
            async with ledger.transaction() as tx:
                tx.send_again(intent.intent_id, at=clock.now())
        except LedgerError as error:
            why = f"it waited for its turn, and that it leaves now could not be recorded: {error.sentence}"
            return lambda: why
        return permit

    return recorded


def event_of(kind: EventKind, intent: Intent, decision: Decision, host_id: str, now: datetime, said: str = "") -> Event:
    """Return the event of a decision that was carried out or refused; `said` replaces its reason."""
    return Event(
        at=now,
        kind=kind,
        workload=intent.slot.workload,
        slot=intent.slot.index,
        lease_id=intent.lease_id,
        intent_id=intent.intent_id,
        market=intent.market,
        host_id=host_id,
        bid=intent.price,
        rate=intent.rate if intent.kind is not IntentKind.RELEASE else None,
        reason_code=decision.reason.code,
        reason=said or decision.reason.sentence,
    )


async def settle_crash(ledger: Ledger, now: datetime, underway: Container[str] = ()) -> None:
    """Settle open intents: `recorded` was never sent, so it is void; `sent` may have been done, so it is in doubt.

    Between two cycles only the intents of `underway` are under way, beside the cycles. A crash left any other such
    intent, or a ledger that took no answer.

    Raises:
        LedgerError: it cannot be written.
    """
    async with ledger.transaction() as tx:
        for intent in ledger.recollection(now).intents:
            if intent.intent_id in underway:
                continue
            if intent.state is IntentState.RECORDED:
                tx.advance_intent(intent.intent_id, IntentState.VOID, at=now, outcome="found at start, never sent")
            elif intent.state is IntentState.SENT:
                tx.advance_intent(intent.intent_id, IntentState.IN_DOUBT, at=now, outcome="found at start")
