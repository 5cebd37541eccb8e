"""Endings that no strategy decides: unfinished and failed leases, a person's orders, and hard caps.

Invariants:
1. Each lease gets one order: the first, or in place of a pause the first that is hard. A lease that is not proven ours
   gets none (rule 18).
2. Only a person or a hard cap ends a lease whose label is no longer ours.
3. While nothing may be paid for, only a person or a hard cap begins to end a lease that this ledger did not rent.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from agent.decide import slot_releases
from agent.decide.limits import cap_endings, limits, open_bids, unsafe_writes
from agent.decide.operators import operator_holds
from agent.decide.reconcile import ownership
from agent.decide.reconcile.losses import lost_for_good
from agent.decide.run_times import run_time_verdict
from agent.domain.fleet import Fleet
from agent.domain.money import UsdPerHour
from agent.domain.record import hold
from agent.domain.record.hold import Word
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import GONE, Hold, Pause, Release, slot_of

GENTLE_FOR = timedelta(minutes=2)
"""How long a release may wait for the work to stop. It is less than rule 20 leaves to a kill that comes meanwhile."""


def endings(
    fleet: Fleet,
    standing: limits.CommittedSpend,
    caps: limits.Limits,
    lowest: Mapping[str, UsdPerHour] = cap_endings.NO_LIMITS,
) -> tuple[Pause | Release, ...]:
    """Return all endings that are due, on every ground, in their order; `lowest` is as for hard caps."""
    return tuple(order for order in _endings(fleet, standing, caps, lowest) if _why_kept(order, fleet) is None)


def kept(fleet: Fleet, standing: limits.CommittedSpend, caps: limits.Limits) -> list[Hold]:
    """Return a hold for each lease that only ends once its market may be paid."""
    if not any(view.no_spend_because for view in fleet.markets.values()):
        return []
    wanted = [(order, _why_kept(order, fleet)) for order in _endings(fleet, standing, caps) if may_go(order)]
    seen = {order.lease.lease_id for order, why in wanted if why is None}
    held: list[Hold] = []
    for order, why in wanted:
        if why is not None and order.lease.lease_id not in seen:
            seen.add(order.lease.lease_id)
            sentence = f"{why.sentence}; it would end {order.lease.lease_id}: {order.reason.sentence}"
            held.append(Hold(order.lease.slot, replace(order.reason, code="limit", sentence=sentence, limit=why.limit)))
    return held


def awaited(fleet: Fleet, due: Iterable[Pause | Release | Hold]) -> set[Slot]:
    """Return the slots that wait for an ending, before any strategy is asked about them."""
    still = (each for each in due if isinstance(each, Hold) or not fleet.is_leaving(each.lease))
    return set(map(slot_of, still))


def _why_kept(order: Pause | Release, fleet: Fleet) -> limits.Strike | None:
    if is_of_person(order) or is_of_cap(order) or order.reason.code == slot_releases.RELEASE_AGAIN:
        return None
    return unsafe_writes.of_unrented(order, fleet)


def endings_now(fleet: Fleet, caps: limits.Limits) -> tuple[Pause | Release, ...]:
    """Return all endings that are due by what the fleet has committed now."""
    return endings(fleet, limits.committed_by_fleet(fleet), caps)


def _endings(
    fleet: Fleet,
    standing: limits.CommittedSpend,
    caps: limits.Limits,
    lowest: Mapping[str, UsdPerHour] = cap_endings.NO_LIMITS,
) -> Iterator[Pause | Release]:
    yield from slot_releases.releases(fleet)
    yield from lost_for_good.releases(fleet)
    yield from operator_holds.orders(fleet, hold.in_force(fleet.holds, fleet.now))
    yield from run_time_verdict.endings(fleet)
    yield from cap_endings.endings(fleet, standing, caps, lowest)
    yield from open_bids.endings(fleet)


def orders(due: Iterable[Pause | Release]) -> list[Pause | Release]:
    """Return the endings to be sent, one order a lease, in their order."""
    return _one_a_lease(filter(may_go, due))


def at_once(due: Iterable[Pause | Release]) -> frozenset[str]:
    """Return the ids of leases that a person or a hard cap ends, even if something else ends them too."""
    return frozenset(each.lease.lease_id for each in due if is_of_person(each) or is_of_cap(each))


def grounds(due: Iterable[Pause | Release]) -> Counter[str]:
    """Return on how many grounds each lease ends, by its id."""
    return Counter(order.lease.lease_id for order in due)


def may_go(order: Pause | Release) -> bool:
    """Return whether an order may be written to its lease. Without our label only a person or a cap ends it."""
    return not ownership.why_untouched(order.lease, is_ordered=is_of_person(order) or is_of_cap(order))


def last_orders(due: Iterable[Pause | Release]) -> list[Pause | Release]:
    """Return the orders that are sent even if no other may be: a person's kill and release, and a cap's pauses."""
    return _one_a_lease(order for order in due if order.lease.is_proven and _is_last(order))


def _is_last(order: Pause | Release) -> bool:
    return is_of_person(order) or (isinstance(order, Pause) and is_of_cap(order))


def _one_a_lease(due: Iterable[Pause | Release]) -> list[Pause | Release]:
    found: dict[str, Pause | Release] = {}
    for order in due:
        first = found.setdefault(order.lease.lease_id, order)
        # Where nothing can be paused, a pause that is not hard may leave a lease as it is.
        if isinstance(first, Pause) and is_hard(order) and not is_hard(first):
            found[order.lease.lease_id] = order
    return list(found.values())


def is_of_person(order: Pause | Release) -> bool:
    """Return whether a person ends a lease, or its work is done."""
    return _code(order) in {
        "ordered",
        GONE,
        *(operator_holds.PAST[word] for word in (Word.PAUSE, Word.DONE, Word.KILL)),
    }


def is_of_cap(order: Pause | Release) -> bool:
    """Return whether a hard cap ends a lease."""
    return _code(order) in {"over_budget", "over_rate"}


def is_gone(order: Pause | Release) -> bool:
    """Return whether a person said that nothing is left of an instance, now or when its release began."""
    return _code(order) == GONE


def is_hard(order: Pause | Release) -> bool:
    """Return whether a kill or a hard cap ends a lease: then its GPU stops, whatever that loses (rule 20)."""
    return is_of_cap(order) or _code(order) == operator_holds.PAST[Word.KILL]


def is_gentle(order: Release, now: datetime) -> bool:
    """Return whether a release may let the work stop by itself: not after a kill or at a hard cap, nor for too long."""
    if is_hard(order):
        return False
    lease = order.lease
    return lease.state is not LeaseState.RELEASING or timedelta() <= now - lease.state_since < GENTLE_FOR


def _code(order: Pause | Release) -> str:
    """Return the code of an order's reason; a repeated release has the reason of the first."""
    return order.lease.end_reason if order.reason.code == slot_releases.RELEASE_AGAIN else order.reason.code
