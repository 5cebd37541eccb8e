"""The windows of a workload as spans of time, over every change of its zone's clock.

Invariants:
1. A window begins when the zone's wall clock shows the time of its crontab expression, and lasts its length in elapsed
   time, whatever that clock does meanwhile.
2. A time that the clock shows twice begins one window, at the first. A time that it skips begins one window, at the
   instant of the skip.
3. Windows that touch or overlap are one span.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from heapq import merge
from zoneinfo import ZoneInfo

from agent.config.run_times import crontab
from agent.domain.work.run_times.run_window import WindowNow, WindowRule

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_MARGIN = timedelta(hours=6)
"""No zone's clock is set back by more at once."""
MOST_A_DAY = 300
"""The most windows in their own length and a day: more often than every five minutes is a mistake."""
AHEAD = timedelta(days=8)
"""How far ahead the end of an open window is looked for, longer than any single window. Beyond, it is always open."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a workload may run, in UTC; `zone` is that of the window that ends last."""

    opens: datetime
    closes: datetime
    zone: str


def now(rules: tuple[WindowRule, ...], at: datetime) -> WindowNow:
    """Return where an instant is in the windows of a workload."""
    hour = at.replace(minute=0, second=0, microsecond=0)
    for span in _around(rules, hour):
        if at < span.opens:
            return WindowNow(is_open=False, until=span.opens, spoken=spoken(span.opens, span.zone, at))
        if at < span.closes and span.closes > hour + AHEAD:
            return WindowNow(is_open=True, until=None, since=span.opens)
        if at < span.closes:
            said = spoken(span.closes, span.zone, at)
            return WindowNow(is_open=True, until=span.closes, spoken=said, since=span.opens)
    return WindowNow(is_open=False, until=None)


def is_too_often(rule: WindowRule, since: datetime) -> bool:
    """Return whether the windows of a rule begin so often that they cannot be meant."""
    first = wall = crontab.next_time(rule.cron, since)
    for _ in range(MOST_A_DAY):
        wall = None if wall is None else crontab.next_time(rule.cron, wall + _MINUTE)
    return first is not None and wall is not None and wall - first < rule.lasts + _DAY


def spans(rules: tuple[WindowRule, ...], since: datetime, until: datetime) -> Iterator[Span]:
    """Yield the spans that are open at any time between two instants, in order, not cut to them."""
    yield from (span for span in _merged(rules, since, until) if span.closes > since and span.opens < until)


def spoken(at: datetime, zone: str, now: datetime) -> str:
    """Return an instant by the wall clock of a zone: Mon 20:00 Europe/Berlin, with the date if it is far away."""
    local = at.astimezone(ZoneInfo(zone))
    is_near = abs(at - now) < timedelta(days=6)
    return f"{local:%a %H:%M} {zone}" if is_near else f"{local:%a %Y-%m-%d %H:%M} {zone}"


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant at which a zone's clock shows a time, the first of two, or at which it skips that time."""
    at = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == wall:
        return at
    # The clock skips this time: the change is between the instants by the offsets after and before it.
    before, after = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), at
    while after - before > _MINUTE / 60:
        middle = before + (after - before) / 2
        is_changed = middle.astimezone(zone).replace(tzinfo=None) >= wall
        before, after = (before, middle) if is_changed else (middle, after)
    return after.replace(microsecond=0)


@lru_cache(maxsize=512)
def _around(rules: tuple[WindowRule, ...], hour: datetime) -> tuple[Span, ...]:
    """Return the spans that decide where any instant of an hour is; cached by the hour."""
    return tuple(span for span in _merged(rules, hour, hour + AHEAD) if span.closes > hour)


def _merged(rules: tuple[WindowRule, ...], since: datetime, until: datetime) -> Iterator[Span]:
    """Yield the spans of all rules, from those that may still be open at `since` to the first that ends after `until`.

    The last span may be cut: its true end may be later.
    """
    open_span: Span | None = None
    for span in merge(*(_starts(rule, since) for rule in rules), key=lambda span: span.opens):
        if open_span is None or span.opens > open_span.closes:
            if open_span is not None:
                yield open_span
            open_span = span
        elif span.closes > open_span.closes:
            open_span = Span(open_span.opens, span.closes, span.zone)
        if open_span.closes > until:
            break
    if open_span is not None:
        yield open_span


def _starts(rule: WindowRule, since: datetime) -> Iterator[Span]:
    """Yield one window after another, from those that may still be open at `since` on."""
    zone = ZoneInfo(rule.zone)
    first = since - rule.lasts
    wall = crontab.next_time(rule.cron, _wall(first - _MARGIN, zone))
    while wall is not None:
        opens = instant(wall.replace(tzinfo=None), zone)
        if opens >= first:
            yield Span(opens, opens + rule.lasts, rule.zone)
        wall = crontab.next_time(rule.cron, wall + _MINUTE)


def _wall(at: datetime, zone: ZoneInfo) -> datetime:
    """Return what a zone's clock shows at an instant, passed as UTC."""
    return at.astimezone(zone).replace(tzinfo=UTC)
