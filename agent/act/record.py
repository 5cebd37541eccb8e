"""Records the facts of one cycle in one transaction, each with its cause, evidence and money."""

from collections.abc import Iterable
from datetime import datetime

import structlog
from msgspec.structs import replace

from agent.act import decision_log, disowned_leases, protection_cooldowns
from agent.act.guarding import guard_facts
from agent.decide import plan
from agent.decide.accounting import kept_work, meter, task_costs
from agent.decide.facts import (
    Alert,
    Fact,
    InstanceFound,
    IntentSettled,
    LeaseChanged,
    LeaseDisowned,
    Marked,
    OfGuard,
    ProgressReported,
)
from agent.decide.moves import cooldowns_after_writes
from agent.decide.moves.recovery import OF_THE_MARKET
from agent.decide.pricing import cooldowns
from agent.decide.reconcile.losses import outbid_evidence
from agent.decide.reconcile.tasks import credited_work
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance
from agent.domain.market.offer import Offer
from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import IntentState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally, place_of
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, slot_of
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger
from agent.ledger.tables import decisions
from agent.ledger.tables.host_rows import Exposure
from agent.ledger.tables.spend_rows import SpendEntry
from agent.ledger.transaction import Transaction

log = structlog.get_logger("gpubid.record")

_COSTED = frozenset({EventKind.WORKLOAD_DONE, EventKind.WORKLOAD_HELD})
"""Events with the cost of the slot up to then."""


async def record(ledger: Ledger, fleet: Fleet, facts: Iterable[Fact]) -> None:
    """Record the facts of one cycle, all or nothing. Alerts are events too; the caller sends each only once.

    Raises:
        LedgerError: nothing was written.
    """
    new_facts = list(facts)
    if not new_facts:
        return
    marks = [fact for fact in new_facts if isinstance(fact, Marked) and fact.kind in _COSTED]
    costs = _costs(ledger.recollection(fleet.now), fleet, marks) if marks else {}
    rents = await disowned_leases.rents(ledger, new_facts)
    finished = credited_work.of(new_facts)
    unjudged = {done: await (await ledger.reader()).lost_at(done.lease.lease_id, done.ended_at) for done in finished}
    async with ledger.transaction() as tx:
        for fact in new_facts:
            if isinstance(fact, Marked):
                _marked(tx, fact, costs, fleet.now)
            elif isinstance(fact, LeaseDisowned):
                disowned_leases.write(tx, fact, rents, fleet.now)
                add_charges(tx, fact.lease, fact.charges, fleet.now)
            else:
                _write(tx, fleet, fact)
        for done, kept in unjudged.items():
            lost = kept if done.lost is None else done.lost
            add_charges(tx, done.lease, credited_work.charges(done, lost), fleet.now)
            tx.forget_loss(done.lease.lease_id, done.ended_at)


async def record_again(ledger: Ledger, fleet: Fleet, facts: Iterable[Fact]) -> None:
    """Record the facts whose first commit failed, unless that commit took place: nothing is counted twice.

    Raises:
        LedgerError: nothing was written.
    """
    new_facts = list(facts)
    lease = set(fleet.leases)
    first = {fact.before.lease_id: fact.before for fact in reversed(new_facts) if isinstance(fact, LeaseChanged)}
    if first and all(before in lease for before in first.values()):
        await record(ledger, fleet, new_facts)


async def record_plan(ledger: Ledger, planned: plan.Plan, seen: Iterable[Offer]) -> tuple[Decision, ...]:
    """Record new decisions and changed prices; return those decisions.

    Raises:
        LedgerError: nothing was written.
    """
    news: list[Decision] = []
    offers = list(seen)
    async with ledger.transaction() as tx:
        for decision in planned.decisions:
            tuned = planned.tuned.get(slot_of(decision).workload)
            row = decisions.recorded(
                decision,
                planned.now,
                strategy=tuned.name if tuned else "",
                strategy_file=tuned.source if tuned else "",
                params_digest=tuned.digest if tuned else "",
            )
            if tx.record_decision(row):
                news.append(decision)
        asked_at: dict[str, datetime | None] = {lease.lease_id: None for lease in planned.given_up}
        asked_at |= {asked.lease.lease_id: asked.since for asked in planned.asked}
        for lease in ledger.recollection(planned.now).leases if asked_at else ():
            if lease.lease_id in asked_at:
                tx.update_lease(replace(lease, checkpoint_asked_at=asked_at[lease.lease_id]))
        tx.observe_prices(_sample(offer) for offer in offers)
        tx.observe_offers(offers)
    decision_log.write(news)
    return tuple(news)


def _sample(offer: Offer) -> PriceSample:
    return PriceSample(offer.seen_at, offer.market, offer.host_id, offer.gpu, offer.gpus, offer.ask, offer.floor)


def add_charges(tx: Transaction, lease: Lease, charges: Iterable[meter.Charge], now: datetime) -> None:
    """Add the cost of a lease to the ledger, and its running time to its host's record."""
    ran = weighed = 0.0
    for charge in charges:
        ran += charge.running_seconds
        weighed += charge.weighed_hours
        if charge.phases is not None:
            tx.add_phases(lease.tenure, charge.phases)
        tx.add_spend(
            SpendEntry(
                lease_id=lease.lease_id,
                workload=lease.slot.workload,
                market=lease.market,
                tenure=lease.tenure,
                day=charge.day,
                gpu=charge.gpu,
                disk=charge.disk,
                traffic=charge.traffic,
                running_seconds=charge.running_seconds,
                useful_seconds=charge.useful_seconds,
            )
        )
    if ran:
        tx.add_host_exposure(
            Exposure(
                lease.market,
                lease.host_id,
                owner_id=lease.owner_id,
                running_seconds=ran,
                bid_seconds=ran if lease.tenure is Tenure.INTERRUPTIBLE else 0.0,
                weighed_hours=weighed if lease.tenure is Tenure.INTERRUPTIBLE else 0.0,
                at=now,
            )
        )


def _costs(known: Recollection, fleet: Fleet, marks: Iterable[Marked]) -> dict[Slot, money.Usd]:
    """Return the cost of each marked slot up to now, over all its leases, also under its workload's old name."""
    slots = {mark.lease.slot for mark in marks if mark.lease is not None}
    was = {work.name: work.was for work in fleet.workloads}
    return task_costs.spent_on_each(slots, known.leases, known.tasks, fleet.now, was)


def _marked(tx: Transaction, fact: Marked, costs: dict[Slot, money.Usd], now: datetime) -> None:
    kept, lease = fact.record, fact.lease
    tx.add_expiring(kept)
    if not fact.kind:
        return
    scope, key = kept.place
    log.info(fact.kind, key=key, lease=lease.lease_id if lease else None)
    tx.append_event(
        Event(
            at=now,
            kind=fact.kind,
            workload=fact.workload,
            slot=lease.slot.index if lease else None,
            lease_id=lease.lease_id if lease else "",
            market=lease.market if lease else "",
            host_id=lease.host_id if lease else "",
            amount=costs.get(lease.slot, money.ZERO) if lease and fact.kind in _COSTED else None,
            reason_code=scope,
            reason=fact.sentence,
        )
    )


def _write(tx: Transaction, fleet: Fleet, fact: Fact) -> None:
    if isinstance(fact, LeaseChanged):
        _changed(tx, fleet, fact)
    elif isinstance(fact, IntentSettled):
        _settled(tx, fleet, fact)
    elif isinstance(fact, InstanceFound):
        _found(tx, fleet, fact)
    elif isinstance(fact, Alert):
        _alert(tx, fleet, fact)
    elif isinstance(fact, ProgressReported):
        keep_progress(tx, fact)
    elif isinstance(fact, OfGuard):
        guard_facts.write(tx, fact)


def _changed(tx: Transaction, fleet: Fleet, fact: LeaseChanged) -> None:
    after = fact.after
    tx.update_lease(after)
    add_charges(tx, after, fact.charges, fleet.now)
    if fact.cooldown is not None:
        tx.add_expiring(fact.cooldown)
    if not fact.kind:
        return
    _teach(tx, fleet, fact)
    if fact.cause is not None:
        lost = credited_work.lost_by(fact)
        is_measured = kept_work.kept_at(fleet, fact.before) is not None
        tx.add_loss(after.lease_id, after.state_since, fact.cause, lost, is_measured=is_measured)
    if fact.kind is EventKind.LEASE_PROGRESSED:
        tx.lift_expiring(place_of(Counted.STALLED, str(after.slot)))
    for start in fleet.tallies if after.state is LeaseState.RUNNING else ():
        if (start.counted, start.of) == (Counted.STARTED, after.lease_id):
            tx.lift_expiring(start.place)
    log.info(fact.kind, lease=after.lease_id, slot=str(after.slot), cause=fact.cause.value if fact.cause else None)
    tx.append_event(_lease_event(fact, fact.kind, fleet.now))


def _teach(tx: Transaction, fleet: Fleet, fact: LeaseChanged) -> None:
    """Add the latest event to the record of the host."""
    after = fact.after
    is_loss, is_start = fact.kind == EventKind.LEASE_INTERRUPTED, fact.kind == EventKind.LEASE_RUNNING
    if not is_loss and not is_start:
        return
    if is_start:
        until, start = fleet.now + cooldowns.RAN_COUNTS, f"a start on host {after.host_id}"
        tx.add_expiring(Tally(Counted.RAN, str(after.slot), fleet.now, until, start, after.lease_id))
    work = fleet.workload(after.slot.workload)
    image_gb = work.image_gb if work is not None and is_start and after.opened_at == fact.before.state_since else 0.0
    tx.add_host_exposure(
        Exposure(
            after.market,
            after.host_id,
            owner_id=after.owner_id,
            interruptions=int(is_loss),
            market_losses=int(is_loss and fact.cause in OF_THE_MARKET),
            displaced=int(outbid_evidence.is_displaced(fact)),
            outbids=outbid_evidence.winning_bid(fact),
            starts_ok=int(is_start),
            # A start that was lost and came back says nothing about how fast the image was pulled.
            loaded_gb=image_gb,
            # A start is dated by the listing before it, which may be earlier than the answer to the rent.
            loading_seconds=max(0.0, (after.state_since - after.opened_at).total_seconds()) if image_gb else 0.0,
            at=fleet.now,
        )
    )


def _lease_event(fact: LeaseChanged, kind: EventKind, now: datetime) -> Event:
    after, evidence = fact.after, fact.evidence
    return Event(
        at=after.state_since,
        seen_at=now,
        kind=kind,
        workload=after.slot.workload,
        slot=after.slot.index,
        lease_id=after.lease_id,
        intent_id=after.intent_id,
        market=after.market,
        host_id=after.host_id,
        cause=fact.cause,
        rule=evidence.rule if evidence else "",
        evidence=evidence.sentence if evidence else "",
        bid=fact.before.bid,
        floor=evidence.floor if evidence else None,
        notice_at=evidence.notice_at if evidence else None,
        rate=after.billing_rate,
        amount=money.total(charge.gpu + charge.disk + charge.traffic for charge in fact.charges),
        reason=after.end_reason,
    )


def _settled(tx: Transaction, fleet: Fleet, fact: IntentSettled) -> None:
    intent, lease = fact.intent, fact.lease
    tx.advance_intent(
        intent.intent_id,
        fact.state,
        at=fleet.now,
        outcome=fact.outcome,
        instance_id=lease.instance_id if lease else "",
        lease_id=lease.lease_id if lease else "",
    )
    if lease is not None:
        tx.open_lease(lease)
        if lease.has_failed:
            tx.append_event(protection_cooldowns.mismatch_event(lease, fleet.now))
    is_confirmed = fact.state is IntentState.CONFIRMED
    for place in cooldowns_after_writes.tallies_ended_by_proof(intent, fleet.leases) if is_confirmed else ():
        tx.lift_expiring(place)
    for started in cooldowns_after_writes.started_by_proof(intent, fleet) if is_confirmed else ():
        tx.add_expiring(started)
    kind = EventKind.INTENT_CONFIRMED if fact.state is IntentState.CONFIRMED else EventKind.INTENT_VOID
    log.info(kind, intent=intent.intent_id, outcome=fact.outcome)
    tx.append_event(
        Event(
            at=fleet.now,
            kind=kind,
            workload=intent.slot.workload,
            slot=intent.slot.index,
            lease_id=lease.lease_id if lease else intent.lease_id,
            intent_id=intent.intent_id,
            market=intent.market,
            host_id=intent.host_id,
            bid=intent.price,
            reason=f"{intent.kind.value}: {fact.outcome}",
        )
    )


def _found(tx: Transaction, fleet: Fleet, fact: InstanceFound) -> None:
    row, lease = fact.instance, fact.lease
    if lease is not None:
        tx.open_lease(lease)
    log.warning(EventKind.ORPHAN_SEEN, instance=row.instance_id, verdict=fact.verdict)
    tx.append_event(_orphan_event(row, fact, fleet.now))


def _orphan_event(row: Instance, fact: InstanceFound, now: datetime) -> Event:
    lease = fact.lease
    return Event(
        at=now,
        kind=EventKind.ORPHAN_SEEN,
        workload=lease.slot.workload if lease else "",
        slot=lease.slot.index if lease else None,
        lease_id=lease.lease_id if lease else "",
        market=row.market,
        host_id=row.host_id,
        rate=row.billing_rate,
        reason_code=fact.verdict,
        reason=fact.sentence,
    )


def keep_progress(tx: Transaction, fact: ProgressReported) -> None:
    """Record the progress of a workload; less progress than before, or complete progress, is an event."""
    after, before = fact.after, fact.before
    tx.keep_progress(after)
    if fact.speed is not None:
        tx.add_speed(fact.speed)
    if before is None or after.hours >= before.hours:
        return
    log.warning(EventKind.PROGRESS_WENT_BACK, workload=after.workload, hours=after.hours, before=before.hours)
    sentence = f"progress fell from {before.hours:g} h to {after.hours:g} h: work was lost, or the report is wrong"
    tx.append_event(
        Event(
            at=after.told_at,
            kind=EventKind.PROGRESS_WENT_BACK,
            workload=after.workload,
            lease_id=after.lease_id,
            reason_code=after.source,
            reason=sentence,
        )
    )


def _alert(tx: Transaction, fleet: Fleet, fact: Alert) -> None:
    log.warning("alert", code=fact.code, key=fact.key)
    tx.append_event(Event(at=fleet.now, kind=fact.kind, reason_code=fact.code, reason=fact.sentence))
