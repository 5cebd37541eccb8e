"""Cooldowns that a write starts: for a refused offer, an abandoned host, a slot that has just rented, a start."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from agent.decide.pricing import cooldowns
from agent.decide.reconcile import workload_end
from agent.decide.reconcile.guards.guard_refusal import GUARD_REFUSED
from agent.domain.fleet import Fleet
from agent.domain.record import cooldown
from agent.domain.record.cooldown import Cooldown, CooldownKind
from agent.domain.record.rest import Rest
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Reason, Rebid, Release, Rent, Resume
from agent.domain.work.only_copy import may_leave
from agent.domain.work.workload import Workload

SLOT_REST = timedelta(seconds=60)
"""After a rent a slot does not rent again sooner: whatever goes wrong costs at most one instance a minute."""
REFUSED_OFFER_REST = timedelta(minutes=10)
"""After a refusal that says nothing about the offer itself."""

TOO_LOW = "bid_too_low"
RESTS = {
    "no_such_ask": (cooldowns.OFFER_TAKEN, "the market says it is taken"),
    TOO_LOW: (cooldowns.UNDERBID, "a bid that was too low"),
}
CANNOT_START = frozenset({"host_full", "no_capacity", TOO_LOW, "not_sold"})
"""Refusals of a start that an immediate second attempt would meet again."""
FAILED_STARTS = frozenset({"start_failed", "start_overdue", "not_ready"})
"""Codes of releases that count as a failed start of the host."""


def after_rent(slot: Slot, now: datetime) -> Cooldown:
    """Return the cooldown of a slot that has just rented."""
    return Cooldown(CooldownKind.SLOT, str(slot), now + SLOT_REST, "a rent a moment ago")


def after_refusal(decision: Decision, reason: str, known: Iterable[Tally], now: datetime) -> tuple[Rest, ...]:
    """Return the cooldowns after a refusal of the market.

    An offer whose bids are refused again and again rests ever longer: its quote is stale.
    """
    if isinstance(decision, Rent):
        return tuple(_of_offer(decision.offer.key, reason, known, now))
    if isinstance(decision, Resume | Rebid) and (reason in CANNOT_START or _is_invalid(decision, reason)):
        why = f"{cooldowns.REFUSED_START}{reason}"
        return (Cooldown(CooldownKind.FULL, decision.lease.lease_id, now + cooldowns.HOST_FULL, why),)
    return ()


def _is_invalid(decision: Resume | Rebid, reason: str) -> bool:
    return isinstance(decision, Resume) and reason == cooldowns.INVALID


def _of_offer(offer: str, reason: str, known: Iterable[Tally], now: datetime) -> Iterable[Rest]:
    rest, why = RESTS.get(reason, (REFUSED_OFFER_REST, f"the refusal {reason}"))
    if reason == TOO_LOW:
        counted = (each.count for each in known if (each.counted, each.of) == (Counted.UNDERBID, offer))
        count = next(counted, 0) + 1
        until = now + cooldowns.REFUSALS_KEPT
        yield Tally(Counted.UNDERBID, offer, now, until, f"{count} refused bids", count=count)
        rest = cooldowns.after_refusals(count)
    yield Cooldown(CooldownKind.OFFER, offer, now + rest, why)


def after_release(decision: Release, now: datetime) -> tuple[Rest, ...]:
    """Return the cooldowns after a release: a host that we left or that could not start is not rented again at once."""
    held, code = decision.lease, decision.reason.code
    found: list[Rest] = []
    if code == "start_overdue":
        # A start that took too long counts against the workload; other failed starts are counted when seen.
        found.append(workload_end.failed_start(held.slot.workload, held.lease_id, now, code))
    if code in FAILED_STARTS:
        found.append(cooldown.of_host(held.host, now + cooldowns.START_FAILED, "a failed start"))
    elif code == "mismatch":
        why = "a rent that was not what was asked for"
        found.append(cooldown.of_host(held.host, now + cooldowns.START_FAILED, why))
    elif code == GUARD_REFUSED:
        found.append(cooldown.of_host(held.host, now + cooldowns.HOST_LEFT, "another host is tried"))
    elif code == "moved":
        found.append(cooldown.of_host(held.host, now + cooldowns.HOST_LEFT, "we left it a moment ago"))
    return tuple(found)


def after_start(decision: Resume, now: datetime) -> Tally:
    """Return the mark of a start that the market confirmed: it may be queued, or may have failed."""
    lease_id, until = decision.lease.lease_id, now + cooldowns.STARTED_KEPT
    return Tally(Counted.STARTED, lease_id, now, until, "a start without effect yet")


def instead(decision: Decision, work: Workload, fleet: Fleet) -> Decision:
    """Return a decision, or a replacement for a start that was confirmed before and shows no effect.

    The market's queue keeps such a start. Our own pause cancels it: after that a start is a new one.
    """
    if not isinstance(decision, Resume) or decision.lease.paused_by_us:
        return decision
    held = decision.lease
    starts = (each for each in fleet.tallies if (each.counted, each.of) == (Counted.STARTED, held.lease_id))
    start = next((each for each in starts if not each.is_over(fleet.now)), None)
    if start is None:
        return decision
    began = start.since
    if fleet.now - began < cooldowns.START_PATIENCE:
        sentence = f"its start was confirmed at {began:%H:%M} UTC and waits for free GPUs"
        return Hold(held.slot, Reason("start_waits", sentence))
    why = f"its start, confirmed at {began:%H:%M} UTC, has shown no effect"
    if may_leave(held, work):
        return Release(held, Reason("host_full", f"{why}: it is released for another host"))
    sentence = f"{why}; its disk may not be lost, so it is tried again later"
    return Hold(held.slot, Reason("host_full", sentence))
