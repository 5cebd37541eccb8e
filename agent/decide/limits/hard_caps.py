"""Rule 12: endings by a hard cap, of healthy leases too: first pauses, lowest priority first, then releases.

Invariants:
1. Over a cap of a day, a month or in total, everything that runs or may start in its scope is paused. So is everything
   on a market whose credit is at its floor. Over a cap of the rate, only as much as needed is paused.
2. Under a spent budget, a lease that is already paused and still bills its disk is released, unless the disk may hold
   the only checkpoint (rule 11).
3. Bids that wait for an auction go first, then the lowest priority; among equals the most expensive.
"""

from collections.abc import Iterator

from agent.decide.limits import limits
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.record.budget import Kind, Scope
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Pause, Reason, Release
from agent.domain.work.only_copy import may_leave


def endings(fleet: Fleet, standing: limits.CommittedSpend, caps: limits.Limits) -> Iterator[Pause | Release]:
    """Yield the endings by the caps, in order. A lease may appear for more than one reason."""
    paused: set[str] = set()
    for scope, spent in _spent(fleet, standing, caps):
        for order in _of_budget(fleet, scope, spent):
            if isinstance(order, Pause):
                paused.add(order.lease.lease_id)
            yield order
    # The narrowest cap first: a lease that a workload's own cap pauses no longer counts against the fleet's.
    for scope in reversed(caps.scopes()):
        cap = caps.hard(scope).per_hour
        if cap is not None:
            for order in _of_rate(fleet, scope, cap, paused):
                paused.add(order.lease.lease_id)
                yield order


def _spent(fleet: Fleet, standing: limits.CommittedSpend, caps: limits.Limits) -> Iterator[tuple[Scope, limits.Strike]]:
    for scope in caps.scopes():
        spent = limits.over_budget(standing, caps, scope)
        if spent is not None:
            yield scope, spent
    for name in sorted(fleet.markets):
        empty = limits.under_credit_floor(fleet.markets[name], caps)
        if empty is not None:
            yield Scope(Kind.MARKET, name), empty


def _of_budget(fleet: Fleet, scope: Scope, spent: limits.Strike) -> Iterator[Pause | Release]:
    reason = Reason("over_budget", spent.sentence, limit=spent.limit)
    ordered = _least_first(fleet, scope)
    yield from (Pause(lease, reason) for lease in ordered if _may_bill_gpu(lease))
    for lease in ordered:
        work = fleet.workload(lease.slot.workload)
        if _is_kept_by_us(lease) and work is not None and may_leave(lease, work):
            sentence = f"{spent.sentence}; its disk goes on billing and has no only copy"
            yield Release(lease, Reason("over_budget", sentence, limit=spent.limit))


def _of_rate(fleet: Fleet, scope: Scope, cap: money.UsdPerHour, paused: set[str]) -> Iterator[Pause]:
    """Yield pauses until the possible hourly cost of open leases is within the cap. Doubts pause nothing."""
    rate = money.total_rate(
        lease.disk_rate if lease.lease_id in paused else lease.committed_rate
        for lease in fleet.leases
        if scope.covers(lease)
    )
    whose = f"the {scope}" if scope.name else "the fleet"
    for lease in _least_first(fleet, scope):
        if rate <= cap:
            return
        if _may_bill_gpu(lease) and lease.lease_id not in paused:
            sentence = f"{whose} may cost {rate}, above the cap of {cap}; the lowest priority is paused first"
            yield Pause(lease, Reason("over_rate", sentence, limit=f"{scope.prefix}per_hour"))
            rate = rate - lease.most_gpu_rate


def _is_kept_by_us(lease: Lease) -> bool:
    return lease.paused_by_us and lease.is_down and not lease.is_held


def _least_first(fleet: Fleet, scope: Scope) -> list[Lease]:
    mine = [lease for lease in fleet.leases if lease.is_open and lease.state is not LeaseState.RELEASING]
    within = [lease for lease in mine if scope.covers(lease)]
    # What only waits for an auction ends before anything that works.
    order = {lease.lease_id: (not lease.is_open_bid, _priority(fleet, lease), -lease.bid.micros) for lease in within}
    return sorted(within, key=lambda lease: order[lease.lease_id])


def _priority(fleet: Fleet, lease: Lease) -> float:
    """Return the priority of a lease; without a workload, or while held for a person, it is the lowest."""
    work = fleet.workload(lease.slot.workload)
    return float("-inf") if work is None or lease.is_held else float(work.priority)


def _may_bill_gpu(lease: Lease) -> bool:
    if lease.bills is Bills.GPU_AND_DISK and lease.state is not LeaseState.MISSING:
        return True
    return lease.state in {LeaseState.RUNNING, LeaseState.STARTING, LeaseState.EXITED} or lease.may_start
