"""Doubt, settled by the market's own listing: a rent by its label, other orders by the instance's fields.

Invariants:
1. An intent in doubt becomes confirmed only by a listing that shows it done, and void only after a grace without one.
2. A rent stays in doubt while an instance may be its own that shows no label, or that the market's reply named and
   that shows another label. Only a person knows whose it is, and a second rent would be paid besides.
3. Grace is at least `GRACE_SECONDS` of monotonic time and `GRACE_LISTINGS` complete listings since the doubt began.
"""

import dataclasses

from msgspec.structs import replace

from agent.decide.facts import Alert, Fact, IntentSettled, LeaseChanged
from agent.decide.reconcile import orphans, ownership
from agent.decide.reconcile.pass_memory import Absence, Memory
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.event_kind import EventKind
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import Lease, LeaseState

GRACE_SECONDS = 600.0
GRACE_LISTINGS = 3
RUNS = frozenset({InstanceState.RUNNING, InstanceState.LOADING, InstanceState.PENDING})


def settle(fleet: Fleet, view: MarketView, memory: Memory) -> tuple[tuple[Fact, ...], dict[str, Absence]]:
    """Return the facts that the fresh `view` settles, and the start of each other intent's doubt."""
    facts: list[Fact] = []
    doubts: dict[str, Absence] = {}
    rows = {row.instance_id: row for row in view.instances}
    for intent in fleet.intents:
        if intent.state is not IntentState.IN_DOUBT:
            continue
        if intent.market != view.market:
            doubts.update(
                {intent.intent_id: memory.doubts[intent.intent_id]} if intent.intent_id in memory.doubts else {}
            )
            continue
        began = memory.doubts.get(intent.intent_id, Absence(view.listed_monotonic, view.listings))
        fact = _settled(fleet, view, rows, intent, began)
        facts += [fact] if fact is not None else []
        # The doubt is kept until the ledger has the verdict, so that a verdict that could not be recorded is found
        # again at once.
        doubts[intent.intent_id] = began
    return tuple(facts), doubts


def started(fleet: Fleet, lease: Lease, row: Instance) -> Lease:
    """Return a lease as after its start in doubt, if its row shows that done: it is no longer stopped by us.

    It may show no more than the market's intent to run it, once GPUs are free.
    """
    is_shown = any(
        intent.lease_id == lease.lease_id
        and intent.kind is IntentKind.RESUME
        and intent.state is IntentState.IN_DOUBT
        and _shows(intent, row)
        for intent in fleet.intents
    )
    return replace(lease, paused_by_us=False) if is_shown and lease.paused_by_us else lease


def with_start(lease: Lease, started: Lease, changes: list[LeaseChanged]) -> list[LeaseChanged]:
    """Return the changes of `started`, if it differs, as changes of the lease before its start was shown done."""
    if started is lease:
        return changes
    first, *others = changes or [LeaseChanged(started, started, None)]
    kind = first.kind or (EventKind.LEASE_QUEUED if first.after.state is LeaseState.PAUSED else None)
    return [dataclasses.replace(first, before=lease, kind=kind), *others]


def why_open(fleet: Fleet, intent: Intent) -> str:
    """Return what an intent in doubt waits for: a listing, or a person who knows whose an instance is."""
    view = fleet.markets.get(intent.market)
    is_rent = intent.kind is IntentKind.RENT
    nameless = _nameless(fleet, view, intent) if is_rent and view is not None else None
    if nameless is None:
        return f"{intent.kind.value} {intent.intent_id} is in doubt until a listing settles it"
    return (
        f"rent {intent.intent_id} is in doubt while instance {nameless.instance_id} on its host {_carries(nameless)}: "
        "if it is yours, label it; if not, release it at the market"
    )


def _carries(row: Instance) -> str:
    return "carries another label" if row.label else "carries no label"


def _settled(
    fleet: Fleet, view: MarketView, rows: dict[str, Instance], intent: Intent, began: Absence
) -> IntentSettled | Alert | None:
    if intent.kind is IntentKind.RENT:
        return _rent(fleet, view, intent, began)
    of_intent = next((lease for lease in fleet.leases if lease.lease_id == intent.lease_id), None)
    row = rows.get(of_intent.instance_id) if of_intent is not None else None
    if row is not None and _shows(intent, row):
        return IntentSettled(intent, IntentState.CONFIRMED, "the listing shows it done")
    if of_intent is not None and intent.kind is IntentKind.RELEASE and view.denies(of_intent.instance_id):
        return IntentSettled(intent, IntentState.CONFIRMED, "the market says that there is no such instance")
    if of_intent is None or not of_intent.is_open:
        return IntentSettled(intent, IntentState.VOID, "its lease has ended")
    if not intent.kind.is_paying or (row is not None and _is_over(view, began)):
        return IntentSettled(intent, IntentState.VOID, "the listing does not show it done")
    return None


def _rent(fleet: Fleet, view: MarketView, intent: Intent, began: Absence) -> IntentSettled | Alert | None:
    for row in view.instances:
        label = view.labels.get(row.instance_id)
        if label is not None and label.fleet_id == fleet.fleet_id and label.intent_id == intent.intent_id:
            lease = ownership.proven(fleet, view, orphans.lease_of(fleet, row, intent.slot, intent))
            return IntentSettled(intent, IntentState.CONFIRMED, "the listing shows its label", lease)
    if not _is_over(view, began):
        return None
    nameless = _nameless(fleet, view, intent)
    if nameless is not None:
        sentence = (
            f"instance {nameless.instance_id} on host {intent.host_id} {_carries(nameless)} and began after rent "
            f"{intent.intent_id}, which stays in doubt: if it is yours, label it; if not, release it at the market"
        )
        return Alert(EventKind.ALERT_UNLABELLED_INSTANCE, nameless.instance_id, sentence)
    return IntentSettled(intent, IntentState.VOID, "no listing showed it within the grace")


def _nameless(fleet: Fleet, view: MarketView, intent: Intent) -> Instance | None:
    """Return an instance that may be of a rent in doubt although it does not carry its label, or None."""
    known = {lease.instance_id for lease in fleet.leases}
    sent = intent.sent_at or intent.recorded_at
    return next(
        (
            row
            for row in view.instances
            if row.host_id == intent.host_id
            and row.instance_id not in known
            and (not row.label or _was_named(fleet, row, intent))
            and row.created_at is not None
            and row.created_at >= sent
        ),
        None,
    )


def _was_named(fleet: Fleet, row: Instance, intent: Intent) -> bool:
    """Return whether the market's reply to a rent named an instance, which then did not show its label."""
    past = fleet.past_leases.get(row.instance_id)
    return past is not None and past.intent_id == intent.intent_id and past.end_reason == ownership.NEVER_OURS


def _shows(intent: Intent, row: Instance) -> bool:
    if intent.kind is IntentKind.REBID:
        return intent.price is not None and intent.price == (row.gpu_rate if row.limit is None else row.limit)
    if intent.kind is IntentKind.RESUME:
        return row.state in RUNS or row.is_wanted_running
    return intent.kind is IntentKind.PAUSE and row.state is InstanceState.PAUSED


def _is_over(view: MarketView, began: Absence) -> bool:
    return view.listed_monotonic - began.monotonic >= GRACE_SECONDS and view.listings - began.listings >= GRACE_LISTINGS
