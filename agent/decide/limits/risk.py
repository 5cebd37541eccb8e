"""Deadlines that a budget endangers, reported early, while a cap can still be raised.

The cap always wins. The check assumes the worst case: no more interruptible capacity, and all remaining work on demand
from now on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.deadline import deadline_progress as tasks
from agent.decide.facts import Alert
from agent.decide.limits import limits
from agent.decide.pricing import offer_refusal
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record import budget
from agent.domain.record.budget import Kind, Scope, Window
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import Workload

START_HOURS = 20 / 60
"""Assumed hours of an on-demand start while too few are known."""
_HOUR = timedelta(hours=1)
_ROUNDING_HOURS = 1 / 3600
"""The hours of several windows, added up, may be less than those of the whole by a rounding error."""
Risks = Mapping[str, tuple[Alert, ...]]


@dataclass(frozen=True, slots=True)
class Worst:
    """Finishing on demand from now: hours needed, hours left, dollars an hour with disk, and the market."""

    hours: float
    left: float
    rate: money.UsdPerHour
    market: str


def risks(fleet: Fleet, caps: limits.Limits, before: Risks) -> Risks:
    """Return the risk of each deadline. An earlier finding is kept while no on-demand price is known."""
    found: dict[str, tuple[Alert, ...]] = {}
    for work in fleet.workloads:
        task = tasks.of(fleet, work)
        if task is None or task.todo <= 0 or work.slots == 0:
            continue
        asks = [row for row in _fitting(fleet, work) if row.ask is not None]
        if asks:
            found[work.name] = tuple(_endangered(fleet, work, task, asks, caps))
        elif work.name in before:
            found[work.name] = before[work.name]
    return found


def _fitting(fleet: Fleet, work: Workload) -> Iterator[Offer]:
    fits = offer_refusal.fitting(work, fleet.now)
    for name, view in fleet.markets.items():
        if work.may_use(name):
            yield from (row for row in view.offers if fits(row))


def _endangered(
    fleet: Fleet, work: Workload, task: tasks.Task, asks: list[Offer], caps: limits.Limits
) -> Iterator[Alert]:
    within = [row for row in asks if _rate(row, work) <= work.price_of(row.gpu)]
    if not within:
        cheapest = min(asks, key=lambda row: _rate(row, work))
        most = work.price_of(cheapest.gpu)
        sentence = f"on-demand costs {_rate(cheapest, work)} at least and max_price is {most}"
        yield _alert(work, task, "max_price", sentence)
        return
    worst = _worst(fleet, work, task, min(within, key=lambda row: _per_work(row, work, task)))
    if worst.hours > worst.left:
        yield _alert(work, task, "time", f"on-demand takes {worst.hours:.1f} h and {worst.left:.1f} h are left")
    yield from _over_budgets(fleet, work, task, worst, caps)
    yield from _over_credit(fleet, work, task, worst, caps)


def _worst(fleet: Fleet, work: Workload, task: tasks.Task, row: Offer) -> Worst:
    leases = [lease for place in work.places for lease in fleet.leases_of(place)]
    runs = [each for each in leases if each.tenure is Tenure.ON_DEMAND and each.state is LeaseState.RUNNING]
    if runs:
        return Worst(
            task.todo / task.of_lease(runs[0]), task.left, runs[0].gpu_rate + runs[0].disk_rate, runs[0].market
        )
    speed = task.speed(row.gpu, row.dlperf)
    start = max(task.start_hours, START_HOURS)
    return Worst(
        start + tasks.restart_hours(work, task, speed) + task.todo / speed, task.left, _rate(row, work), row.market
    )


def _over_budgets(fleet: Fleet, work: Workload, task: tasks.Task, worst: Worst, caps: limits.Limits) -> Iterator[Alert]:
    """Yield an alert for each budget of the fleet, the market or the workload that leaves too little."""
    if caps.per_instance_hour is not None and worst.rate > caps.per_instance_hour:
        yield _alert(work, task, "per_instance_hour", f"on-demand costs {worst.rate}, above {caps.per_instance_hour}")
    whole = limits.committed_by_fleet(fleet)
    for scope in (budget.EVERYTHING, budget.of_market(worst.market), budget.of_workload(work.name)):
        hard, standing = caps.hard(scope), whole.of(scope)
        others = max(standing.rate - _own(fleet, work, scope), money.FREE)
        if hard.per_hour is not None and others + worst.rate > hard.per_hour:
            sentence = f"on-demand costs {worst.rate}, others {others}, and {hard.per_hour} are allowed"
            yield _alert(work, task, f"{scope.prefix}per_hour", sentence)
        for window in budget.SUMS:
            cap = hard.amount(window)
            if cap is None:
                continue
            rate = (worst.rate + others).dollars
            hours = _affordable(fleet.now, task.deadline.by, rate, cap, standing.spent(window), window)
            if hours < min(worst.hours, worst.left) - _ROUNDING_HOURS:
                sentence = f"{_worst_sentence(worst)}, and the cap of {cap} leaves {hours:.1f} h until then"
                yield _alert(work, task, f"{scope.prefix}{window.value}", sentence)


def _over_credit(fleet: Fleet, work: Workload, task: tasks.Task, worst: Worst, caps: limits.Limits) -> Iterator[Alert]:
    view = fleet.markets[worst.market]
    if view.credit is None:
        return
    room = view.credit - (caps.credit_floor(worst.market) or money.ZERO)
    if room < _cost(worst):
        yield _alert(work, task, "credit", f"{_worst_sentence(worst)}, and the credit of {worst.market} leaves {room}")


def _worst_sentence(worst: Worst) -> str:
    return f"finishing on demand takes {worst.hours:.1f} h and {_cost(worst)}"


def _cost(worst: Worst) -> money.Usd:
    return worst.rate.over(worst.hours * 3600)


def _affordable(now: datetime, until: datetime, rate: float, cap: money.Usd, spent: money.Usd, window: Window) -> float:
    """Return the hours until `until` that a cap pays for; a day's or month's cap is full again in each window."""
    hours, at, room = 0.0, now, max((cap - spent).dollars, 0.0)
    while at < until:
        end = min(budget.end(window, at) or until, until)
        hours += min((end - at) / _HOUR, room / rate if rate else (end - at) / _HOUR)
        at, room = end, cap.dollars
    return hours


def _own(fleet: Fleet, work: Workload, scope: Scope) -> money.UsdPerHour:
    mine = (lease for lease in fleet.leases if lease.slot.workload == work.name)
    if scope.kind is Kind.MARKET:
        mine = (lease for lease in mine if lease.market == scope.name)
    return money.total_rate(lease.committed_rate for lease in mine)


def _rate(row: Offer, work: Workload) -> money.UsdPerHour:
    return (row.ask or money.FREE) + row.disk_rate(work.disk_gb)


def _per_work(row: Offer, work: Workload, task: tasks.Task) -> float:
    return _rate(row, work).dollars / task.speed(row.gpu, row.dlperf)


def _alert(work: Workload, task: tasks.Task, cap: str, why: str) -> Alert:
    by = f"{task.deadline.by:%Y-%m-%d %H:%M} UTC"
    what = "cannot be met" if cap == "time" else f"is at risk by {cap}"
    change = "ask for less or later" if cap == "time" else "raise it, or expect the work to be late: the cap wins"
    fix = f"{change}; `gpubid reload` applies a changed file"
    sentence = f"the deadline of {work.name}, {task.todo:.1f} h of work by {by}, {what}: {why}; {fix}"
    return Alert(EventKind.ALERT_DEADLINE_AT_RISK, f"{work.name}/{cap}", sentence)
