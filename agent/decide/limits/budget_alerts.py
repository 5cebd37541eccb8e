"""Crossed thresholds of budgets. Each is reported once in its window, even after a restart."""

from collections.abc import Iterator

from agent.decide.facts import Alert, Marked
from agent.decide.limits import limits
from agent.domain.fleet import Fleet
from agent.domain.money import Usd
from agent.domain.record import budget
from agent.domain.record.budget import SUMS, Kind, Scope, Thresholds, Window
from agent.domain.record.event_kind import EventKind
from agent.domain.record.reported_crossing import ReportedCrossing


def crossings(fleet: Fleet, standing: limits.CommittedSpend, caps: limits.Limits) -> Iterator[Marked | Alert]:
    """Yield every crossed threshold of money that was not reported yet, and every rate above its threshold."""
    reported = {each.place for each in fleet.reported_crossings if not each.is_over(fleet.now)}
    for scope in caps.scopes():
        part = standing.of(scope)
        for kind, thresholds in (
            (EventKind.BUDGET_WARNED, caps.soft_of(scope)),
            (EventKind.BUDGET_REACHED, caps.hard(scope)),
        ):
            yield from (
                mark for mark in _sums(fleet, scope, part, kind, thresholds) if mark.record.place not in reported
            )
        warn = caps.soft_of(scope).per_hour
        if warn is not None and part.rate >= warn:
            sentence = (
                f"{scope}: {part.rate} is committed, and the warning is set at {warn}; `gpubid fleet` shows its leases"
            )
            yield Alert(EventKind.ALERT_RATE_WARNED, f"{scope}", sentence)


def used(standing: limits.CommittedSpend, caps: limits.Limits) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    """Yield the used share of each threshold, by (scope, name, window, level)."""
    for scope in caps.scopes():
        part = standing.of(scope)
        for level, thresholds in (("soft", caps.soft_of(scope)), ("hard", caps.hard(scope))):
            rate = thresholds.per_hour
            if rate is not None and rate.micros:
                yield (scope.kind.value, scope.name, Window.HOUR.value, level), part.rate.micros / rate.micros
            for window in SUMS:
                amount = thresholds.amount(window)
                if amount is not None and amount.micros:
                    share = part.spent(window).micros / amount.micros
                    yield (scope.kind.value, scope.name, window.value, level), share


def _sums(
    fleet: Fleet, scope: Scope, part: limits.CommittedSpend, kind: EventKind, thresholds: Thresholds
) -> Iterator[Marked]:
    for window in SUMS:
        threshold, spent = thresholds.amount(window), part.spent(window)
        if threshold is not None and spent >= threshold:
            until = budget.end(window, fleet.now)
            crossing = ReportedCrossing(kind, scope, window, threshold, fleet.now, f"{spent} of {threshold}", until)
            workload = scope.name if scope.kind is Kind.WORKLOAD else ""
            yield Marked(crossing, workload, None, kind, _sentence(scope, window, spent, threshold, kind))


def _sentence(scope: Scope, window: Window, spent: Usd, threshold: Usd, kind: EventKind) -> str:
    span = {Window.DAY: "today", Window.MONTH: "this month"}.get(window, "altogether")
    does = (
        "nothing more is rented there, and its leases are paused; to go on, raise the cap and type `gpubid reload`"
        if kind == EventKind.BUDGET_REACHED
        else "the warning is set there; `gpubid spend` shows what was paid for"
    )
    return f"{scope}: {spent} is spent {span}, {threshold} is the threshold: {does}"
