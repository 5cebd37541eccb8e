"""The part of an estimate about time: the windows and the budgets of a workload, and when each option would be done."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from agent.config.run_times import run_calendar
from agent.config.settings import Config
from agent.decide.estimate.completion import Allowance, Cap, Completion, completion
from agent.decide.estimate.option import Estimate
from agent.decide.limits import first_tasks
from agent.decide.run_times import running_limits
from agent.domain import money, span_text
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Scope, Thresholds
from agent.domain.work.run_times.running_limit import LimitOf
from agent.domain.work.workload import Workload

AHEAD = timedelta(days=366)
"""How far an end is looked for."""
WEEK = timedelta(days=7)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Times:
    """When a workload of a configuration may run, from `now` on."""

    config: Config
    work: Workload
    now: datetime

    @property
    def begins(self) -> datetime:
        """The first instant at which it may begin, if a window is open then."""
        return max(self.now, self.work.not_before or self.now)

    def spans(self, until: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the times in which it may run, cut to the span from its beginning to an instant."""
        if not self.work.windows:
            yield self.begins, until
            return
        for span in run_calendar.spans(self.work.windows, self.begins, until):
            yield max(span.opens, self.begins), min(span.closes, until)

    @property
    def hours_a_week(self) -> float:
        """How many of the 168 hours from its beginning are open."""
        return sum((closes - opens) / _HOUR for opens, closes in self.spans(self.begins + WEEK))

    @property
    def max_running(self) -> timedelta | None:
        """The most time that the workload as a whole may run."""
        limit = running_limits.limit_of(self.work, LimitOf.WORKLOAD)
        return None if limit is None else limit.most

    def caps(self, market: str) -> tuple[Cap, ...]:
        """Return the budgets that bound the workload on a market, without empty ones."""
        scopes = (EVERYTHING, budget.of_market(market), budget.of_workload(self.work.name))
        caps = (Cap(scope.place, self.config.limits.hard(scope)) for scope in scopes)
        return tuple(cap for cap in caps if cap.hard != Thresholds())

    def completion(self, option: Estimate) -> Completion | None:
        """Return when an option on one of our markets would be done; None if its hours are not known."""
        market, _, strategy = option.name.partition(", ")
        if not strategy or option.hours is None or self.config.market(market) is None:
            return None
        dollars = option.dollars / option.hours if option.dollars is not None and option.hours else None
        rate = money.UsdPerHour(round((dollars or option.dollars_per_hour) * 1_000_000))
        allowed = Allowance(self.caps(market), self.max_running)
        return completion(option.hours, rate, self.spans(self.begins + AHEAD), allowed)


def document(times: Times | None, options: Sequence[tuple[str, Estimate]]) -> dict[str, Any]:
    """Return the part of the JSON; empty without a workload."""
    if times is None:
        return {}
    window = run_calendar.now(times.work.windows, times.begins) if times.work.windows else None
    return {
        "windows_hours_a_week": None if window is None else round(times.hours_a_week, 4),
        "window_opens_at": None if window is None or window.is_open or not window.until else window.until.isoformat(),
        "not_before": times.work.not_before.isoformat() if times.work.not_before else None,
        "max_running_hours": None if times.max_running is None else times.max_running / _HOUR,
        "budgets": [_budget(scope, times) for scope in _scopes(times)],
        "ends": [
            {"gpu": gpu, "name": option.name, "tenure": option.tenure.value, **_end(end)}
            for gpu, option in options
            if (end := times.completion(option)) is not None
        ],
    }


def sentences(times: Times | None, options: Sequence[tuple[str, Estimate]]) -> Iterator[str]:
    """Yield windows and budgets as lines; nothing without a workload."""
    if times is None:
        return
    shown = document(times, options)
    if times.work.windows:
        week = "the next" if times.begins == times.now else "its first"
        yield f"windows: {times.hours_a_week:.0f} of {week} 168 h; outside of them it is {times.work.outside}d"
    if times.work.not_before is not None and times.work.not_before > times.now:
        yield f"first start: {times.work.not_before:%Y-%m-%d %H:%M} UTC"
    if times.max_running is not None:
        yield f"max_running: {span_text.minutes(times.max_running)}"
    for row in shown["budgets"]:
        caps = [f"{key.removesuffix('_dollars')} ${row[key]:,.2f}" for key in _KEYS if row[key] is not None]
        yield f"budget of {row['of']}: {', '.join(caps)}"
    hard = times.config.limits.hard(budget.of_workload(times.work.name))
    if (stopped := first_tasks.stopped_starts(times.work, hard)) is not None:
        yield f"{stopped}; lower task_hours or max_price, or name the cards in gpu"
    for row in shown["ends"]:
        tenure = "bid" if row["tenure"] == "interruptible" else "on demand"
        yield f"  {row['gpu']}, {row['name']} ({tenure}): {_spoken(row)}"


def _spoken(row: dict[str, Any]) -> str:
    waits = f", waiting for {' and '.join(row['waits_for'])}" if row["waits_for"] else ""
    if row["ends_at"] is not None:
        return f"done on {row['ends_at'][:16].replace('T', ' ')} UTC{waits}"
    stopped = f"stopped by {row['stopped_by']}" if row["stopped_by"] else "not done within a year"
    return f"{stopped} after {row['ran_hours']:.1f} h{waits}"


def _end(end: Completion) -> dict[str, Any]:
    return {
        "ends_at": None if end.at is None else end.at.isoformat(),
        "ran_hours": round(end.hours, 4),
        "stopped_by": end.stopped_by or None,
        "waits_for": list(end.waits_for),
    }


_KEYS = ("per_hour_dollars", "per_day_dollars", "per_month_dollars", "total_dollars")


def _scopes(times: Times) -> list[Scope]:
    markets = [budget.of_market(market.name) for market in times.config.markets if times.work.may_use(market.name)]
    scopes = [EVERYTHING, *markets, budget.of_workload(times.work.name)]
    return [scope for scope in scopes if times.config.limits.hard(scope) != Thresholds()]


def _budget(scope: Scope, times: Times) -> dict[str, Any]:
    hard = times.config.limits.hard(scope)
    amounts = (hard.per_hour, hard.per_day, hard.per_month, hard.total)
    whose = {"of": "all workloads" if scope == EVERYTHING else str(scope)}
    return whose | {key: None if one is None else one.dollars for key, one in zip(_KEYS, amounts, strict=True)}
