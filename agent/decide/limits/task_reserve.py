"""The money that an array's own budget sets aside: by task, not by hour.

A task that begins when the budget is nearly spent would be stopped before it is done, with all others.

Invariants:
1. Only a rent that begins a task is bounded. What runs, resumes or moves is never stopped by it; a hard cap does that.
2. Each live slot keeps what it lacks of the cost of a task, and nothing once it costs more.
"""

from agent.decide.accounting import task_costs
from agent.decide.limits.committed_spend import CommittedSpend, instances_of
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.money import Usd
from agent.domain.record import budget
from agent.domain.record.budget import Scope
from agent.domain.record.hold import Word
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Rent
from agent.domain.work.workload import Workload


def cost_of_a_task(fleet: Fleet, work: Workload) -> Usd | None:
    """Return what a task of an array costs: the median of the finished ones.

    Before enough are done it is the upper figure of `gpubid estimate`, and without prices in the ledger `task_hours` at
    the highest price. None if none is known.
    """
    if work.array is None:
        return None
    done = task_costs.marked(work, Word.DONE, fleet.holds, fleet.now)
    known = task_costs.costs(done.keys(), fleet.tasks)
    if known is not None:
        return Usd(round(known.median))
    if work.name in fleet.task_estimates:
        return fleet.task_estimates[work.name]
    hours = work.array.task_hours
    return None if hours is None else work.prices.highest.over(hours * 3600)


def set_aside(decision: Decision, fleet: Fleet, after: CommittedSpend, scope: Scope) -> Usd | None:
    """Return what an array's budget sets aside if `decision` is carried out; None if it counts by the hour.

    `after` is the committed spend after the decision and those before it in the same plan.
    """
    work = _array_of(fleet, scope)
    each = None if work is None else cost_of_a_task(fleet, work)
    if work is None or each is None:
        return None
    if not isinstance(decision, Rent) or fleet.occupants_of(decision.slot):
        return money.ZERO
    live = _live(fleet, work)
    left = (each - task_costs.spent_on(place, mine, fleet.tasks, fleet.now) for place, mine in live.items())
    known = sum(sum(map(instances_of, mine)) if mine else 1 for mine in live.values())
    begun = max(after.of(scope).instances - known, 1)
    return money.total(one for one in left if one > money.ZERO) + Usd(each.micros * begun)


def _array_of(fleet: Fleet, scope: Scope) -> Workload | None:
    work = fleet.workload(scope.name)
    is_array = work is not None and work.array is not None and scope == budget.of_workload(work.name)
    return work if is_array else None


def _live(fleet: Fleet, work: Workload) -> dict[Slot, list[Lease]]:
    """Return the slots that something bills for, or may, with their open leases."""
    found: dict[Slot, list[Lease]] = {}
    for lease in fleet.leases:
        if lease.is_open and lease.slot.workload == work.name:
            found.setdefault(lease.slot, []).append(lease)
    for intent in fleet.intents:
        if intent.is_open and intent.kind.is_paying and intent.slot.workload == work.name:
            found.setdefault(intent.slot, [])
    return found
