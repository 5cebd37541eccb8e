"""Cooldowns after repeated failures: reads the recent failures and records the cooldowns that follow.

The count is made from the ledger's events, so a restart forgets neither the counts nor the cooldowns.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import structlog

from agent.decide.facts import Fact, IntentSettled, LeaseChanged
from agent.decide.pricing import protections
from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentState
from agent.domain.record.lease import Lease
from agent.ledger.reader import Reader
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.protect")

TRIPPED = EventKind.PROTECTION_TRIPPED
KINDS = (
    EventKind.LEASE_INTERRUPTED,
    EventKind.LEASE_OFFLINE,
    EventKind.LEASE_GONE,
    EventKind.LEASE_FAILED,
    EventKind.LEASE_MISMATCHED,
    EventKind.INTENT_REJECTED,
)
WITH_CODE = frozenset({EventKind.INTENT_REJECTED, EventKind.LEASE_MISMATCHED})
RUNS = EventKind.LEASE_RUNNING
"""The event that ends a row of cooldowns of its market."""
MOST_EVENTS = 2000


def is_due(facts: Iterable[Fact], done: Iterable[Intent]) -> bool:
    """Return whether an event happened that a protection may count."""
    return any(_counts(fact) for fact in facts) or any(intent.state is IntentState.REJECTED for intent in done)


def _counts(fact: Fact) -> bool:
    """Return whether a fact is trouble: also a rent that was found by its label and is not as ordered."""
    if isinstance(fact, IntentSettled):
        return fact.lease is not None and fact.lease.has_failed
    return isinstance(fact, LeaseChanged) and fact.kind in KINDS


async def review(ledger: Ledger, fleet: Fleet) -> tuple[protections.TriggeredProtection, ...]:
    """Begin a cooldown for everything that failed too often; return the new cooldowns.

    Raises:
        LedgerError: nothing was written.
    """
    reader = await ledger.reader()
    since = fleet.now - protections.LOOKBACK
    events = await reader.events(since=since, kinds=(*KINDS, TRIPPED, RUNS), limit=MOST_EVENTS)
    last = {event.rule: event.at for event in reversed(events) if event.kind == TRIPPED}
    incidents = await _incidents(reader, [event for event in events if event.kind in KINDS])
    in_cooldown = {cooldown.place for cooldown in fleet.cooldowns if not cooldown.is_over(fleet.now)}
    trips = tuple(
        trip
        for trip in protections.tripped(incidents, _exposed(fleet.leases), last, fleet.now, _in_a_row(events))
        if trip.cooldown.place not in in_cooldown
    )
    if trips:
        async with ledger.transaction() as tx:
            for trip in trips:
                tx.add_expiring(trip.cooldown)
                tx.append_event(_event(trip, fleet.now))
                log.warning(TRIPPED, protection=trip.protection, key=trip.cooldown.key, reason=trip.sentence)
    return trips


def mismatch_event(lease: Lease, now: datetime) -> Event:
    """Return the event of a rent that was found by its label and is not as ordered."""
    return Event(
        at=now,
        kind=EventKind.LEASE_MISMATCHED,
        workload=lease.slot.workload,
        slot=lease.slot.index,
        lease_id=lease.lease_id,
        market=lease.market,
        host_id=lease.host_id,
        reason=lease.end_reason,
    )


def _event(trip: protections.TriggeredProtection, now: datetime) -> Event:
    return Event(
        at=now,
        kind=TRIPPED,
        market=trip.market,
        rule=str(trip.cooldown),
        reason_code=trip.protection,
        reason=trip.sentence,
    )


def _in_a_row(events: Iterable[Event]) -> Counter[str]:
    """Count the triggers by place since a rent last ran on their market; `events` begin with the newest."""
    in_a_row, has_run = Counter[str](), set[str]()
    for event in events:
        if event.kind == RUNS:
            has_run.add(event.market)
        elif event.kind == TRIPPED and event.market not in has_run:
            in_a_row[event.rule] += 1
    return in_a_row


def _exposed(leases: Iterable[Lease]) -> Counter[str]:
    """Count the interruptible leases of each model on each market: many leases lose more often than one."""
    return Counter(
        protections.of_model(lease.market, lease.gpu)
        for lease in leases
        if lease.is_open and lease.tenure is Tenure.INTERRUPTIBLE
    )


async def _incidents(reader: Reader, events: Iterable[Event]) -> list[protections.Incident]:
    known = list(events)
    leases = {lease.lease_id: lease for lease in await reader.leases(MOST_EVENTS)}
    return [_incident(event, leases.get(event.lease_id)) for event in known]


def _incident(event: Event, lease: Lease | None) -> protections.Incident:
    return protections.Incident(
        at=event.at,
        kind=event.kind,
        market=event.market,
        gpu=lease.gpu if lease else "",
        host_id=event.host_id,
        owner_id=lease.owner_id if lease else "",
        cause=event.cause,
        # The code of a refusal, and of a difference from the order, comes before its sentence.
        code=event.reason.partition(":")[0] if event.kind in WITH_CODE else "",
    )
