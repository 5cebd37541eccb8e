"""The orders that come before any strategy: endings, tasks that go on with a kept host, and lowered limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.decide.kept_hosts import next_slots
from agent.decide.limits import cap_endings, limits
from agent.decide.moves import due_endings, fallback_markets, permission
from agent.decide.moves.auctions import lower_limit
from agent.decide.moves.permission import Bounds
from agent.decide.moves.waiting_endings import WaitingEndings
from agent.domain.fleet import Fleet
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent


@dataclass(frozen=True, slots=True)
class FirstOrders:
    """Decisions in their order, and what they mean for the proposals of the strategies."""

    decisions: tuple[Decision, ...]
    taken: frozenset[Slot]
    """The slots that have their decision: no strategy is asked about them."""
    fleet: Fleet
    """The fleet after its tasks have gone on. An array's budget also sets money aside for such a task."""


def of(bounds: Bounds, standing: limits.CommittedSpend, waits: WaitingEndings) -> FirstOrders:
    """Return the first orders of a plan. `waits` takes up the endings that wait for a checkpoint or a proxy."""
    fleet, caps = bounds.fleet, bounds.caps
    lowest = lower_limit.lowest(fleet)
    due = due_endings.endings(fleet, standing, caps, lowest)
    orders, unended = due_endings.orders(due), due_endings.kept(fleet, standing, caps)
    going_on, later = _going_on(bounds, standing, orders, due)
    taken = due_endings.awaited(fleet, (*orders, *unended)) | {rent.slot for rent in going_on}
    lowered = _elsewhere(cap_endings.lowerings(fleet, standing, caps, lowest), taken)
    taken |= {rebid.lease.slot for rebid in lowered}
    kept = {rent.kept.lease_id for rent in going_on if rent.kept is not None}
    ending = [order for order in orders if order.lease.lease_id not in kept]
    settled = waits.settle(ending, due_endings.at_once(due))
    return FirstOrders((*settled, *lowered, *going_on, *unended), frozenset(taken), later)


def _going_on(
    bounds: Bounds,
    standing: limits.CommittedSpend,
    orders: Sequence[Pause | Release],
    due: Sequence[Pause | Release],
) -> tuple[list[Rent], Fleet]:
    """Return the tasks that go on with a kept host, in place of its release, and the fleet after them."""

    def permit(rent: Rent, others: Fleet, left: limits.CommittedSpend) -> Decision:
        work = bounds.fleet.workload(rent.slot.workload)
        if work is not None and rent.offer.market in fallback_markets.closed(bounds.fleet, work):
            return Hold(rent.slot, Reason("fallback_closed", f"{rent.offer.market} is a fallback, which is closed"))
        return permission.permitted(rent, replace(bounds, fleet=others), left)

    return next_slots.chosen(bounds.fleet, orders, due_endings.grounds(due), bounds.in_force, standing, permit)


def _elsewhere(rebids: Sequence[Rebid], taken: set[Slot]) -> list[Rebid]:
    return [rebid for rebid in rebids if rebid.lease.slot not in taken]
