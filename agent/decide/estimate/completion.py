"""When a job would be done within the windows, budgets and running time that its workload has.

Invariants:
1. The job runs whenever a window is open and no budget of the day or the month is used up, from the first instant on.
2. Budgets count this job alone. What else is spent leaves less.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide.accounting import meter
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.budget import Thresholds, Window

_HOUR = timedelta(hours=1)
WAITED = (Window.DAY, Window.MONTH)
"""Budgets that begin anew."""


@dataclass(frozen=True, slots=True)
class Cap:
    """The thresholds of one scope, and the table in which they are written."""

    place: str
    hard: Thresholds


@dataclass(frozen=True, slots=True)
class Allowance:
    """What bounds a workload: its budgets, and the most time that it may run."""

    caps: tuple[Cap, ...] = ()
    max_running: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """When a job is done, or None and the key that stops it before; the hours that it ran until then.

    `waits_for` are the budgets of a day or a month that it waits for.
    """

    at: datetime | None
    hours: float
    stopped_by: str = ""
    waits_for: tuple[str, ...] = ()


def completion(
    hours: float, rate: UsdPerHour, spans: Iterable[tuple[datetime, datetime]], allowance: Allowance
) -> Completion:
    """Return when `hours` of running at `rate` are over; `spans` are the open windows in order, as far as looked."""
    dear = next((cap.place for cap in allowance.caps if _is_dear(cap, rate)), None)
    if dear is not None:
        return Completion(None, 0.0, f"{dear}.max_per_hour")
    run = _Run(hours, rate, allowance)
    for opens, closes in spans:
        for begin, end in meter.days(opens, closes):
            run.day(begin, end)
            if run.is_over:
                return run.result()
    return run.result()


def _is_dear(cap: Cap, rate: UsdPerHour) -> bool:
    return cap.hard.per_hour is not None and rate > cap.hard.per_hour


class _Run:
    """A job on its way through the days, with what it has spent in each window of each budget."""

    def __init__(self, hours: float, rate: UsdPerHour, allowance: Allowance) -> None:
        self._left = timedelta(hours=hours)
        self._rate = rate
        self._allowance = allowance
        self._ran = timedelta()
        self._spent: dict[tuple[Window, object], Usd] = {}
        self._waits: dict[str, None] = {}
        self._at: datetime | None = None
        self._stopped_by = ""

    @property
    def is_over(self) -> bool:
        """Whether it is done or stopped for good."""
        return self._at is not None or bool(self._stopped_by)

    def day(self, begin: datetime, end: datetime) -> None:
        """Run through a part of one UTC day."""
        most, why = min([(min(end - begin, self._left), ""), *self._bounds(begin)], key=lambda bound: bound[0])
        self._ran, self._left = self._ran + most, self._left - most
        paid = self._rate.over(most.total_seconds())
        for window in (Window.DAY, Window.MONTH, Window.TOTAL):
            key = _key(window, begin)
            self._spent[key] = self._spent.get(key, Usd(0)) + paid
        if self._left <= timedelta():
            self._at = begin + most
        elif why.endswith(tuple(f"max_{window.value}" for window in WAITED)):
            self._waits[why] = None
        elif why:
            self._stopped_by = why

    def _bounds(self, at: datetime) -> Iterator[tuple[timedelta, str]]:
        """Yield how long each bound still allows, with its key."""
        if self._allowance.max_running is not None:
            yield max(self._allowance.max_running - self._ran, timedelta()), "max_running"
        for cap in self._allowance.caps:
            for window in (*WAITED, Window.TOTAL):
                amount = cap.hard.amount(window)
                if amount is not None and self._rate.micros > 0:
                    left = max((amount - self._spent.get(_key(window, at), Usd(0))).micros, 0)
                    yield left / self._rate.micros * _HOUR, f"{cap.place}.max_{window.value}"

    def result(self) -> Completion:
        """Return the end, or how far it came."""
        return Completion(self._at, self._ran / _HOUR, self._stopped_by, tuple(self._waits))


def _key(window: Window, at: datetime) -> tuple[Window, object]:
    if window is Window.DAY:
        return window, at.date()
    return window, (at.year, at.month) if window is Window.MONTH else None
