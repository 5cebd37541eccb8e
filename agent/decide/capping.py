"""Rule 12: what a hard cap ends, healthy or not: pause first, least important first, release by priority after.

Invariants:
1. Over a day's or month's cap everything that runs or may start is paused; under the rate's cap only as much as needed.
2. What is paused already and still bills a disk is released under a spent budget, unless the disk may hold the only
   checkpoint (rule 11).
3. What matters least goes first; among equals the dearest.
"""

from collections.abc import Iterator

from agent.decide import limits, slots, words
from agent.decide.recovery import may_leave
from agent.domain import money
from agent.domain.decision import Pause, Reason, Release
from agent.domain.fleet import Fleet
from agent.domain.lease import Lease, LeaseState


def endings(fleet: Fleet, standing: limits.Standing, caps: limits.Limits) -> Iterator[Pause | Release]:
    """Yield what the caps end, in the order in which it goes."""
    spent = limits.over_budget(standing, caps)
    if spent is not None:
        yield from _of_budget(fleet, spent)
    elif caps.per_hour is not None:
        yield from _of_rate(fleet, caps.per_hour)


def _of_budget(fleet: Fleet, spent: limits.Strike) -> Iterator[Pause | Release]:
    reason = Reason("over_budget", spent.sentence, limit=spent.limit)
    held = _least_first(fleet)
    yield from (Pause(lease, reason) for lease in held if _may_bill_gpu(lease))
    for lease in held:
        work = fleet.workload(lease.slot.workload)
        if _is_kept_by_us(lease) and work is not None and may_leave(lease, work):
            sentence = f"{spent.sentence}; its disk bills on and holds nothing that is not elsewhere"
            yield Release(lease, Reason("over_budget", sentence, limit=spent.limit))


def _of_rate(fleet: Fleet, cap: money.UsdPerHour) -> Iterator[Pause]:
    """Pause until what open leases may cost an hour is within the cap; doubt only forbids what would pay more."""
    rate = money.total_rate(lease.committed_rate for lease in fleet.leases)
    for lease in _least_first(fleet):
        if rate <= cap:
            return
        if _may_bill_gpu(lease):
            sentence = f"the fleet may cost {rate}, above the cap of {cap}; what matters least is paused first"
            yield Pause(lease, Reason("over_rate", sentence, limit="per_hour"))
            rate = rate - lease.gpu_rate


def _is_kept_by_us(lease: Lease) -> bool:
    return lease.paused_by_us and words.is_down(lease) and not lease.is_held


def _least_first(fleet: Fleet) -> list[Lease]:
    held = [lease for lease in fleet.leases if lease.is_open and lease.state is not LeaseState.RELEASING]
    return sorted(held, key=lambda lease: (_priority(fleet, lease), -lease.gpu_rate.micros))


def _priority(fleet: Fleet, lease: Lease) -> float:
    """Return how much a lease matters; one that no workload asks for, or that waits for a person, matters least."""
    work = fleet.workload(lease.slot.workload)
    return float("-inf") if work is None or lease.is_held else float(getattr(work, "priority", 0))


def _may_bill_gpu(lease: Lease) -> bool:
    return lease.state in {LeaseState.RUNNING, LeaseState.STARTING, LeaseState.EXITED} or slots.may_start(lease)
