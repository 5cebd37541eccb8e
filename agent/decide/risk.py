"""Where a budget and a deadline collide: said before it happens, while a cap can still be raised.

The cap always wins. What is looked at is the worst case: that no interruptible capacity comes any more and the rest of
the work is done on demand from now on.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agent.decide import limits, match
from agent.decide import task as tasks
from agent.decide.facts import Alert
from agent.domain import money
from agent.domain.fleet import Fleet
from agent.domain.lease import LeaseState
from agent.domain.offer import Offer
from agent.domain.tenure import Tenure
from agent.domain.workload import Workload

CODE = "deadline_at_risk"
START_HOURS = 20 / 60
"""What a start on demand is reckoned to take while too few are known. Assumed."""
_HOUR = timedelta(hours=1)
Ends = Callable[[datetime], datetime]
Risks = Mapping[str, tuple[Alert, ...]]


@dataclass(frozen=True, slots=True)
class Worst:
    """Finishing on demand from now: hours it takes, hours there are, and dollars an hour, disk included."""

    hours: float
    left: float
    rate: money.UsdPerHour


def risks(fleet: Fleet, caps: limits.Limits, before: Risks) -> Risks:
    """Return what endangers each deadline; what was found before stands while no on-demand price is known."""
    found: dict[str, tuple[Alert, ...]] = {}
    for work in fleet.workloads:
        task = tasks.of(fleet, work)
        if task is None or task.todo <= 0:
            continue
        asks = [row for row in _fitting(fleet, work) if row.ask is not None]
        if asks:
            found[work.name] = tuple(_endangered(fleet, work, task, asks, caps))
        elif work.name in before:
            found[work.name] = before[work.name]
    return found


def _fitting(fleet: Fleet, work: Workload) -> Iterator[Offer]:
    fits = match.fitting(work, fleet.now)
    for name, view in fleet.markets.items():
        if work.may_use(name):
            yield from (row for row in view.offers if fits(row))


def _endangered(
    fleet: Fleet, work: Workload, task: tasks.Task, asks: list[Offer], caps: limits.Limits
) -> Iterator[Alert]:
    within = [row for row in asks if _rate(row, work) <= work.max_price]
    if not within:
        least = min(_rate(row, work) for row in asks)
        yield _alert(work, task, "max_price", f"on-demand costs {least} at least and max_price is {work.max_price}")
        return
    worst = _worst(fleet, work, task, min(within, key=lambda row: _per_work(row, work, task)))
    if worst.hours > worst.left:
        yield _alert(work, task, "time", f"on-demand takes {worst.hours:.1f} h and {worst.left:.1f} h are left")
    yield from _over_rates(fleet, work, task, worst, caps)
    yield from _over_sums(fleet, work, task, worst, caps)


def _worst(fleet: Fleet, work: Workload, task: tasks.Task, row: Offer) -> Worst:
    held = [lease for place in work.places for lease in fleet.leases_of(place)]
    runs = [each for each in held if each.tenure is Tenure.ON_DEMAND and each.state is LeaseState.RUNNING]
    if runs:
        return Worst(task.todo / task.of_lease(runs[0]), task.left, runs[0].gpu_rate + runs[0].disk_rate)
    speed = task.speed(row.gpu, row.dlperf)
    start = max(task.start_hours, START_HOURS)
    return Worst(start + tasks.restart_hours(work, task, speed) + task.todo / speed, task.left, _rate(row, work))


def _over_rates(fleet: Fleet, work: Workload, task: tasks.Task, worst: Worst, caps: limits.Limits) -> Iterator[Alert]:
    if caps.per_instance_hour is not None and worst.rate > caps.per_instance_hour:
        yield _alert(work, task, "per_instance_hour", f"on-demand costs {worst.rate}, above {caps.per_instance_hour}")
    others = _others(fleet, work)
    if caps.per_hour is not None and others + worst.rate > caps.per_hour:
        sentence = f"on-demand costs {worst.rate}, the rest of the fleet {others}, and {caps.per_hour} are allowed"
        yield _alert(work, task, "per_hour", sentence)


def _over_sums(fleet: Fleet, work: Workload, task: tasks.Task, worst: Worst, caps: limits.Limits) -> Iterator[Alert]:
    standing = limits.standing(fleet)
    cost = worst.rate.over(worst.hours * 3600)
    rate = (worst.rate + _others(fleet, work)).dollars
    told = f"finishing on demand takes {worst.hours:.1f} h and {cost}"
    for name, cap, spent, ends in (
        ("per_day", caps.per_day, standing.today, _days),
        ("per_month", caps.per_month, standing.month, _months),
    ):
        if cap is None:
            continue
        hours = _affordable(fleet.now.astimezone(UTC), task.deadline.by, rate, cap.dollars, spent.dollars, ends)
        if hours < min(worst.hours, worst.left):
            yield _alert(work, task, name, f"{told}, and the cap of {cap} leaves {hours:.1f} h until then")
    credit = [view.credit for name, view in fleet.markets.items() if work.may_use(name) and view.credit is not None]
    if credit and max(credit) < cost:
        yield _alert(work, task, "credit", f"{told}, and the credit is {max(credit)}")


def _affordable(now: datetime, until: datetime, rate: float, cap: float, spent: float, ends: Ends) -> float:
    """Return the hours until then that a cap pays for, which is full again at the start of each span."""
    hours, at, room = 0.0, now, max(cap - spent, 0.0)
    while at < until:
        end = min(ends(at), until)
        hours += min((end - at) / _HOUR, room / rate if rate else (end - at) / _HOUR)
        at, room = end, cap
    return hours


def _days(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def _months(at: datetime) -> datetime:
    return (at.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + timedelta(days=32)).replace(day=1)


def _others(fleet: Fleet, work: Workload) -> money.UsdPerHour:
    return money.total_rate(held.committed_rate for held in fleet.leases if held.slot.workload != work.name)


def _rate(row: Offer, work: Workload) -> money.UsdPerHour:
    return (row.ask or money.FREE) + row.disk_rate(work.disk_gb)


def _per_work(row: Offer, work: Workload, task: tasks.Task) -> float:
    return _rate(row, work).dollars / task.speed(row.gpu, row.dlperf)


def _alert(work: Workload, task: tasks.Task, cap: str, why: str) -> Alert:
    by = f"{task.deadline.by:%Y-%m-%d %H:%M} UTC"
    what = "cannot be met" if cap == "time" else f"is at risk by {cap}"
    mend = "ask for less or later" if cap == "time" else "raise it, or expect the work to be late: the cap wins"
    sentence = f"the deadline of {work.name}, {task.todo:.1f} h of work by {by}, {what}: {why}; {mend}"
    return Alert(CODE, f"{work.name}/{cap}", sentence)
