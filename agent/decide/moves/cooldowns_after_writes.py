"""Cooldowns and tallies after a write: of a refused offer, an abandoned host, a slot that just rented, a start."""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from typing import TypeGuard

from agent.decide import slots
from agent.decide.pricing import cooldowns
from agent.decide.reconcile import workload_end
from agent.decide.reconcile.guards.guard_refusal import GUARD_REFUSED
from agent.decide.reconcile.probes import liveness, stalls
from agent.domain import open_starts
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record import cooldown
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.expiring_record import ExpiringRecord
from agent.domain.record.intent import Intent, IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally, place_of
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent, Resume
from agent.domain.work.only_copy import may_leave
from agent.domain.work.workload import Workload

SLOT_COOLDOWN = timedelta(seconds=60)
"""The cooldown of a slot after a rent, so that a fault costs at most one instance a minute."""
REFUSED_OFFER_COOLDOWN = timedelta(minutes=10)
"""The cooldown of an offer after a refusal that says nothing about the offer itself."""

TOO_LOW = "bid_too_low"
OFFER_COOLDOWNS = {
    "no_such_ask": (cooldowns.OFFER_TAKEN, cooldowns.TAKEN),
    TOO_LOW: (cooldowns.UNDERBID, "a bid that was too low"),
}
CANNOT_START = frozenset({"host_full", "no_capacity", TOO_LOW, "not_sold"})
"""Refusals of a start that an immediate second attempt would get again."""
FAILED_STARTS = frozenset({"start_failed", "start_overdue", "not_ready", liveness.UNHEALTHY_HOST, stalls.STALLED_HOST})
"""Codes of releases that count as a failed start of the host."""
GIVEN_UP = frozenset({liveness.UNHEALTHY, liveness.UNHEALTHY_HOST, stalls.STALLED, stalls.STALLED_HOST})
"""Codes of releases of work that was ready before, and then served or progressed no more."""
_RESTS = {
    workload_end.NO_CAPACITY: (cooldowns.HOST_FULL, "it had no capacity"),
    cooldowns.USED_BEFORE: (cooldowns.MACHINE_IDLE, "its last machine was not gone yet"),
    "moved": (cooldowns.HOST_LEFT, "we left it a moment ago"),
}
"""How long a host rests after a release of such a code, and why."""


def after_rent(slot: Slot, now: datetime) -> Cooldown:
    """Return the cooldown of a slot that has just rented."""
    return Cooldown(CooldownKind.SLOT, str(slot), now + SLOT_COOLDOWN, "a rent a moment ago")


def after_refusal(
    decision: Decision, reason: str, known: Iterable[Tally], now: datetime, sentence: str = ""
) -> tuple[ExpiringRecord, ...]:
    """Return the cooldowns after a refusal of the market, or of gpubid itself with its `sentence`.

    An offer whose bids are refused again and again gets longer and longer cooldowns, since its quote is stale. Refused
    requests of orders on a lease are counted. A rent that gpubid itself refuses delays its slot alone. A refusal of its
    image is a failed start of a workload that never ran: a market whose registry fails for a while holds no work.
    """
    if reason == cooldowns.WITHHELD:
        return ()
    if isinstance(decision, Rent) and reason in cooldowns.OF_OURS:
        until = now + cooldowns.OWN_REFUSAL_WAIT
        return (Cooldown(CooldownKind.SLOT, str(decision.slot), until, f"{cooldowns.OWN_REFUSAL}{sentence}"),)
    if isinstance(decision, Rent):
        return (*_of_offer(decision, reason, known, now), *_of_image(decision.slot, reason, known, now, sentence))
    found: list[ExpiringRecord] = []
    if reason in CANNOT_START and _is_start(decision):
        why = f"{cooldowns.REFUSED_START}{reason}"
        found.append(Cooldown(CooldownKind.FULL, decision.lease.lease_id, now + cooldowns.HOST_FULL, why))
    elif not isinstance(decision, Hold) and (reason == TOO_LOW or cooldowns.is_unrepeated(reason)):
        found.append(_untaken(decision, reason, known, now))
    return tuple(found)


def _of_image(slot: Slot, reason: str, known: Iterable[Tally], now: datetime, sentence: str) -> Iterator[Tally]:
    has_run = any(each.counted is Counted.RAN and each.of.partition("/")[0] == slot.workload for each in known)
    if reason in cooldowns.OF_THE_WORK and not has_run:
        yield workload_end.failed_start(slot.workload, f"order of {now.isoformat()}", now, sentence)


def _untaken(decision: Resume | Rebid | Pause | Release, reason: str, known: Iterable[Tally], now: datetime) -> Tally:
    of, order = decision.lease.lease_id, _order(decision)
    # A refusal from before the lease's last change of state says nothing about the present state, and one of another
    # class nothing about this one: a count of request, account and moment together would prove none of them.
    counted = (each for each in known if _is_of(each, of, order) and each.since >= decision.lease.state_since)
    alike = (each for each in counted if cooldowns.class_of(each.ground) == cooldowns.class_of(reason))
    before = next((each for each in alike if not each.is_over(now)), None)
    since, count = (before.since, before.count + 1) if before is not None else (now, 1)
    return Tally(Counted.UNTAKEN, of, since, now + cooldowns.UNTAKEN_KEPT, reason, where=order, count=count)


def ended_tallies(decision: Decision) -> tuple[tuple[str, str], ...]:
    """Return the places of the tallies that a confirmed order ends: those of refused orders of the same kind."""
    if not isinstance(decision, Resume | Rebid | Pause):
        return ()
    return (place_of(Counted.UNTAKEN, decision.lease.lease_id, _order(decision)),)


def tallies_ended_by_proof(intent: Intent, leases: Iterable[Lease]) -> tuple[tuple[str, str], ...]:
    """Return the same places for an order in doubt that a listing shows done; `leases` are from before that listing."""
    of_intent = next((lease for lease in leases if lease.lease_id == intent.lease_id), None)
    if of_intent is None or intent.kind not in {IntentKind.RESUME, IntentKind.REBID, IntentKind.PAUSE}:
        return ()
    order = intent.kind.value
    if intent.kind is IntentKind.REBID and intent.price is not None:
        order = cooldowns.LOWER if intent.price < of_intent.bid else cooldowns.RAISE
    return (place_of(Counted.UNTAKEN, of_intent.lease_id, order),)


def started_by_proof(intent: Intent, fleet: Fleet) -> tuple[Tally, ...]:
    """Return the tally of a start in doubt that a listing shows done, unless it shows the lease at work."""
    view = fleet.markets.get(intent.market)
    of_intent = next((lease for lease in fleet.leases if lease.lease_id == intent.lease_id), None)
    row = view.instance(of_intent.instance_id) if view is not None and of_intent is not None else None
    if intent.kind is not IntentKind.RESUME or row is None or row.state is InstanceState.RUNNING:
        return ()
    return (after_start(intent.lease_id, fleet.now),)


def _is_of(tally: Tally, lease_id: str, order: str) -> bool:
    return (tally.counted, tally.of, tally.where) == (Counted.UNTAKEN, lease_id, order)


def _order(decision: Resume | Rebid | Pause | Release) -> str:
    """Return the kind of an order. Raise and lower differ: a refused lowering must not delay an urgent raise."""
    if isinstance(decision, Rebid):
        return cooldowns.RAISE if decision.bid > decision.lease.bid else cooldowns.LOWER
    return type(decision).__name__.lower()


def _is_start(decision: Decision) -> TypeGuard[Resume | Rebid]:
    """Return whether an order starts a stopped lease. A refused bid of a running lease says nothing about a start."""
    if isinstance(decision, Rebid):
        return decision.lease.state is LeaseState.PAUSED
    return isinstance(decision, Resume)


def _of_offer(decision: Rent, reason: str, known: Iterable[Tally], now: datetime) -> Iterable[ExpiringRecord]:
    offer = decision.offer.key
    rest, why = OFFER_COOLDOWNS.get(reason, (REFUSED_OFFER_COOLDOWN, f"{cooldowns.REFUSED_OFFER}{reason}"))
    if reason == TOO_LOW:
        before = [each for each in known if (each.counted, each.of) == (Counted.UNDERBID, offer)]
        where = "" if decision.bid is None else str(decision.bid.micros)
        count = sum(each.count for each in before if each.where == where) + 1
        until, ground = now + cooldowns.REFUSALS_KEPT, f"{count} bids of {decision.bid} were too low"
        yield Tally(Counted.UNDERBID, offer, now, until, ground, where, count)
        rest = cooldowns.after_refusals(sum(each.count for each in before) + 1)
    yield Cooldown(CooldownKind.OFFER, offer, now + rest, why)


def after_release(decision: Release, now: datetime) -> tuple[ExpiringRecord, ...]:
    """Return the cooldowns after a release: of a host that we left or that failed to start."""
    lease, code = decision.lease, decision.reason.code
    found: list[ExpiringRecord] = []
    if code == "start_overdue":
        # A start that took too long is counted for the workload here. Other failed starts are counted when they are
        # seen.
        found.append(workload_end.failed_start(lease.slot.workload, lease.lease_id, now, code))
    if (rest := _rest_after(lease, code)) is not None:
        length, why = rest
        found.append(cooldown.of_host(lease.host, now + length, why))
    return tuple(found)


def _rest_after(lease: Lease, code: str) -> tuple[timedelta, str] | None:
    """Return how long the host of a released lease rests, and why; None: it does not."""
    if code in GIVEN_UP and lease.host.is_pool and lease.restarts == 0:
        # The next machine of a pool is another one, and this one was not restarted in place first.
        return cooldowns.POOL_LOST, "another machine is tried"
    if code in FAILED_STARTS:
        return cooldowns.START_FAILED, "a failed start"
    if code == "mismatch":
        length = cooldowns.POOL_MISMATCHED if lease.host.is_pool else cooldowns.START_FAILED
        return length, "a rent that was not as ordered"
    if code in {GUARD_REFUSED, *GIVEN_UP}:
        return cooldowns.HOST_LEFT, "another host is tried"
    return _RESTS.get(code)


def after_pause(decision: Pause, now: datetime) -> tuple[Cooldown, ...]:
    """Return the cooldown of a lease whose machine failed: its next machine may fail too, and each costs minutes."""
    if decision.reason.code != slots.MACHINE_FAILED:
        return ()
    return (Cooldown(CooldownKind.FULL, decision.lease.lease_id, now + cooldowns.HOST_FULL, "its machine failed"),)


def taken_back(decision: Pause, intents: Iterable[Intent], known: Collection[Tally], now: datetime) -> Iterator[Tally]:
    """Yield a tally for each start in doubt that a confirmed pause takes back, so that no other pause is needed."""
    until = now + cooldowns.STARTED_KEPT
    for start in open_starts.of(decision.lease, intents, known):
        yield Tally(Counted.TAKEN_BACK, start.intent_id, now, until, "paused after the start was sent")


def after_start(lease_id: str, now: datetime) -> Tally:
    """Return the tally of a confirmed start, which may be queued or may have failed."""
    until = now + cooldowns.STARTED_KEPT
    return Tally(Counted.STARTED, lease_id, now, until, "a start without effect yet")


def instead(decision: Decision, work: Workload, fleet: Fleet) -> Decision:
    """Return a decision, or a replacement if the market refused the same order a moment ago.

    A start that was confirmed and shows no effect is also replaced, since the market has it in its queue. Our own pause
    cancels that start, so a start after it is a new one.
    """
    refused = _refused(decision, fleet)
    if refused is not None:
        return refused
    if not isinstance(decision, Resume) or decision.lease.paused_by_us:
        return decision
    lease = decision.lease
    starts = (each for each in fleet.tallies if (each.counted, each.of) == (Counted.STARTED, lease.lease_id))
    start = next((each for each in starts if not each.is_over(fleet.now)), None)
    if start is None:
        return decision
    began = start.since
    if fleet.now - began < cooldowns.START_PATIENCE:
        sentence = f"its start was confirmed at {began:%H:%M} UTC and waits for free GPUs"
        return Hold(lease.slot, Reason("start_waits", sentence))
    why = f"its start, confirmed at {began:%H:%M} UTC, has shown no effect"
    if may_leave(lease, work):
        return Release(lease, Reason("host_full", f"{why}: it is released for another host"))
    sentence = f"{why}; its disk may not be lost, so it is tried again later"
    return Hold(lease.slot, Reason("host_full", sentence))


def _refused(decision: Decision, fleet: Fleet) -> Hold | None:
    """Return a hold if a rent, a start or a bid is in cooldown after a refusal, else None.

    Releases and pauses have no cooldown, and a lease that has changed its state since is asked for anew.
    """
    if isinstance(decision, Rent):
        return _refused_by_us(decision, fleet)
    if not isinstance(decision, Resume | Rebid):
        return None
    of, order, since = decision.lease.lease_id, _order(decision), decision.lease.state_since
    refused = next((each for each in fleet.tallies if _is_of(each, of, order) and each.since >= since), None)
    if refused is None or not cooldowns.is_in_cooldown(refused, fleet.now):
        return None
    sentence = f"the market refused this order a moment ago ({refused.ground}): it is tried again later"
    return Hold(decision.lease.slot, Reason("order_refused", sentence))


def _refused_by_us(decision: Rent, fleet: Fleet) -> Hold | None:
    """Return a hold if gpubid itself refused a rent for the slot a moment ago: another offer would not help."""
    for each in fleet.cooldowns:
        is_of_slot = (each.kind, each.key) == (CooldownKind.SLOT, str(decision.slot))
        if is_of_slot and each.ground.startswith(cooldowns.OWN_REFUSAL) and not each.is_over(fleet.now):
            return Hold(decision.slot, Reason("slot_rests", f"in cooldown after {each.ground}"))
    return None
