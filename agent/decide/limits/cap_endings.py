"""Rule 12: endings by a hard cap, of healthy leases too: first pauses, lowest priority first, then releases.

Where the price paid is not the bid, a cap of the rate counts limits that nobody pays. Then the limit of a lease is
lowered instead of pausing the lease. A limit above our own or above what the file allows is first set back to that.

Invariants:
1. Over a cap of a day, a month or in total, everything that runs or may start in its scope is paused. So is everything
   on a market whose credit is at its floor. Over a cap of the rate, only as much as needed is paused; what is being
   released already does not count there.
2. Under a spent budget, a lease that is already paused and still bills its disk is released, unless the disk may hold
   the only checkpoint (rule 11) or a person's order keeps it.
3. Bids that wait for an auction go first, then the lowest priority; among equals the most expensive.
4. Over a cap of the rate, as few as possible are paused: only until lower limits of the others are enough.
5. A listed limit above the one that we ordered lowers no limit below ours: the order sets ours again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from agent.decide.limits import limits
from agent.decide.pricing.value_limit import CENT
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.money import UsdPerHour
from agent.domain.record import hold
from agent.domain.record.budget import Kind, Scope
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Pause, Reason, Rebid, Release
from agent.domain.work.only_copy import may_leave

LOWERED = "cap_limit"
"""The code of the change of a limit that counts too much under a cap of the rate."""
NO_LIMITS: Mapping[str, UsdPerHour] = {}


@dataclass(slots=True)
class _Ordered:
    """The orders of one call so far. `lowest` has the lowest useful limit of each lease whose limit may be lowered."""

    lowest: Mapping[str, UsdPerHour]
    paused: set[str] = field(default_factory=set)
    lowered: dict[str, Rebid] = field(default_factory=dict)

    def gpu_rate(self, lease: Lease) -> UsdPerHour:
        """Return the most that the GPUs of a lease may cost per hour after the orders so far."""
        rebid = self.lowered.get(lease.lease_id)
        return lease.most_gpu_rate if rebid is None else max(lease.gpu_rate, rebid.bid)

    def rate(self, lease: Lease) -> UsdPerHour:
        """Return the rate at which a lease counts after the orders so far."""
        if lease.lease_id in self.paused:
            return lease.disk_rate
        return lease.committed_rate - lease.most_gpu_rate + self.gpu_rate(lease)

    def room(self, lease: Lease) -> UsdPerHour:
        """Return by how much a lower limit of a lease reduces the counted rate at most."""
        lowest = self.lowest.get(lease.lease_id)
        return money.FREE if lowest is None else max(money.FREE, self.gpu_rate(lease) - lowest)


def endings(
    fleet: Fleet,
    standing: limits.CommittedSpend,
    caps: limits.Limits,
    lowest: Mapping[str, UsdPerHour] = NO_LIMITS,
) -> Iterator[Pause | Release]:
    """Yield the endings by the caps, in order. A lease may appear for more than one reason.

    `lowest` has the lowest useful limit of each lease whose limit is to be lowered rather than paused, by its id.
    """
    ordered = _Ordered(lowest)
    for scope, spent in _spent(fleet, standing, caps):
        for order in _of_budget(fleet, scope, spent):
            if isinstance(order, Pause):
                ordered.paused.add(order.lease.lease_id)
            yield order
    yield from _of_rates(fleet, caps, ordered)


def lowerings(
    fleet: Fleet, standing: limits.CommittedSpend, caps: limits.Limits, lowest: Mapping[str, UsdPerHour]
) -> tuple[Rebid, ...]:
    """Return the lower limits that a cap of the rate needs beside the pauses that `endings` yields with `lowest`."""
    ordered = _Ordered(lowest)
    for scope, spent in _spent(fleet, standing, caps):
        ordered.paused.update(each.lease.lease_id for each in _of_budget(fleet, scope, spent))
    # The orders are noted in `ordered` while the pauses are read.
    tuple(_of_rates(fleet, caps, ordered))
    return tuple(rebid for name, rebid in ordered.lowered.items() if name not in ordered.paused)


def _of_rates(fleet: Fleet, caps: limits.Limits, ordered: _Ordered) -> Iterator[Pause]:
    # The narrowest cap first: a lease that a workload's own cap pauses no longer counts against the fleet's.
    for scope in reversed(caps.scopes()):
        cap = caps.hard(scope).per_hour
        if cap is not None:
            yield from _of_rate(fleet, scope, cap, ordered)


def _spent(fleet: Fleet, standing: limits.CommittedSpend, caps: limits.Limits) -> Iterator[tuple[Scope, limits.Strike]]:
    for scope in caps.scopes():
        spent = limits.over_budget(standing, caps, scope)
        if spent is not None:
            yield scope, spent
    for name in sorted(fleet.markets):
        view = fleet.markets[name]
        # A sudden fall of the credit pauses no working lease before the fall is confirmed.
        known = view if view.credit_before_fall is None else replace(view, credit=view.credit_before_fall)
        empty = limits.under_credit_floor(known, caps)
        if empty is not None:
            yield Scope(Kind.MARKET, name), empty


def _of_budget(fleet: Fleet, scope: Scope, spent: limits.Strike) -> Iterator[Pause | Release]:
    reason = Reason("over_budget", spent.sentence, limit=spent.limit)
    ordered, holds = _least_first(fleet, scope), hold.in_force(fleet.holds, fleet.now)
    yield from (Pause(lease, reason) for lease in ordered if _may_bill_gpu(lease) or _has_open_start(fleet, lease))
    for lease in ordered:
        work = fleet.workload(lease.slot.workload)
        is_left = _is_kept_by_us(fleet, lease) and not hold.keeps_disk(lease, holds)
        if is_left and work is not None and may_leave(lease, work):
            sentence = f"{spent.sentence}; its disk goes on billing and has no only copy"
            yield Release(lease, Reason("over_budget", sentence, limit=spent.limit))


def _of_rate(fleet: Fleet, scope: Scope, cap: UsdPerHour, ordered: _Ordered) -> Iterator[Pause]:
    """Yield pauses until the possible hourly cost of open leases, at lower limits, is within the cap.

    Lower limits are noted in `ordered`. Doubts pause nothing. Neither does a lease whose release is ordered: to end
    another for it would end one in each pass that the release takes.
    """
    staying = (lease for lease in fleet.leases if scope.covers(lease) and lease.state is not LeaseState.RELEASING)
    rate = money.total_rate(map(ordered.rate, staying))
    if rate <= cap:
        return
    able = [each for each in _least_first(fleet, scope) if _may_bill_gpu(each) and each.lease_id not in ordered.paused]
    rate = rate - money.total_rate([_set_back(fleet, lease, f"{scope.prefix}per_hour", ordered) for lease in able])
    room = money.total_rate(map(ordered.room, able))
    whose = f"the {scope}" if scope.name else "the fleet"
    for lease in able:
        if rate <= cap:
            return
        sentence, limit = f"{whose} may cost {rate}, above the cap of {cap}", f"{scope.prefix}per_hour"
        most, less = ordered.gpu_rate(lease), ordered.room(lease)
        if rate - room > cap or lease.is_open_bid:
            ordered.paused.add(lease.lease_id)
            yield Pause(lease, Reason("over_rate", f"{sentence}; the lowest priority is paused first", limit=limit))
            rate = rate - most
        elif less > money.FREE:
            bid = max(ordered.lowest[lease.lease_id], _in_cents(most - (rate - cap)))
            sentence = f"{sentence}; {lease.lease_id} costs {lease.gpu_rate}: lower its limit to {bid}"
            ordered.lowered[lease.lease_id] = Rebid(lease, bid, Reason(LOWERED, sentence, limit=limit))
            rate = rate - most + bid
        room = room - less


def _set_back(fleet: Fleet, lease: Lease, limit: str, ordered: _Ordered) -> UsdPerHour:
    """Note the order that sets a lease's limit back to ours, and return by how much the counted rate falls."""
    lowest = ordered.lowest.get(lease.lease_id)
    if lowest is None:
        return money.FREE
    bid, before = max(lowest, _in_cents(_most_allowed(fleet, lease))), ordered.gpu_rate(lease)
    if bid >= lease.bid or bid >= before:
        return money.FREE
    sentence = f"{lease.market} lists {lease.lease_id} with a limit of {lease.bid}: order our own, {bid}, again"
    ordered.lowered[lease.lease_id] = Rebid(lease, bid, Reason(LOWERED, sentence, limit=limit))
    return before - ordered.gpu_rate(lease)


def _in_cents(rate: UsdPerHour) -> UsdPerHour:
    return UsdPerHour(rate.micros // CENT.micros * CENT.micros)


def _most_allowed(fleet: Fleet, lease: Lease) -> UsdPerHour:
    """Return the highest limit that our own order and the file allow: a higher one is listed falsely, or not ours."""
    work = fleet.workload(lease.slot.workload)
    if work is None:
        return lease.own_bid
    most = min(lease.own_bid, work.prices.of(lease.gpu) - lease.disk_rate)
    return most if work.value_per_hour is None else min(most, work.value_per_hour)


def _is_kept_by_us(fleet: Fleet, lease: Lease) -> bool:
    return lease.paused_by_us and fleet.is_stopped(lease) and not lease.is_held


def _least_first(fleet: Fleet, scope: Scope) -> list[Lease]:
    mine = [lease for lease in fleet.leases if lease.is_open and lease.state is not LeaseState.RELEASING]
    within = [lease for lease in mine if scope.covers(lease)]
    # A bid that only waits for an auction ends before any lease that works.
    order = {lease.lease_id: (not lease.is_open_bid, _priority(fleet, lease), -lease.bid.micros) for lease in within}
    return sorted(within, key=lambda lease: order[lease.lease_id])


def _priority(fleet: Fleet, lease: Lease) -> float:
    """Return the priority of a lease; without a workload, or while held for a person, it is the lowest."""
    work = fleet.workload(lease.slot.workload)
    return float("-inf") if work is None or lease.is_held else float(work.priority)


def _has_open_start(fleet: Fleet, lease: Lease) -> bool:
    return lease.is_down and not fleet.is_stopped(lease)


def _may_bill_gpu(lease: Lease) -> bool:
    if lease.bills is Bills.GPU_AND_DISK and lease.state is not LeaseState.MISSING:
        return True
    return lease.state in {LeaseState.RUNNING, LeaseState.STARTING, LeaseState.EXITED} or lease.may_start
