"""A crontab expression: five fields, read as crontab(5) reads them, computed by APScheduler's trigger.

The trigger only ever computes wall-clock times: it is given UTC in place of the zone. What a zone's clock does at the
change of its summer time is decided in `run_calendar`, in one place.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

FIELDS = 5
_FIELD = re.compile(r"[0-9a-z*,/-]+")
_ITEM = re.compile(r"(\*|[0-7]|[a-z]{3})(?:-([0-7]|[a-z]{3}))?(?:/([1-7]))?")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun")


class CrontabError(ValueError):
    """An expression is no crontab expression, or names no time. Its text says why and what to write."""


@lru_cache(maxsize=256)
def trigger(expression: str) -> "CronTrigger":
    """Return the trigger of an expression, for wall-clock times that are passed as UTC.

    Raises:
        CrontabError: the expression is not usable.
    """
    # Few configurations have windows, and every verb reads the configuration.
    from apscheduler.triggers.cron import CronTrigger  # noqa: PLC0415 - see above

    fields = expression.lower().split()
    if len(fields) != FIELDS or not all(_FIELD.fullmatch(field) for field in fields):
        raise CrontabError('must have the five fields of a crontab; write for example cron = "0 20 * * 1-5"')
    minute, hour, day, month, weekday = fields
    if not day.startswith("*") and not weekday.startswith("*"):
        # A crontab runs on either of the two, the trigger on both at once.
        raise CrontabError("names days of the month and days of the week; write a window for each of the two")
    try:
        days = _weekdays(weekday)
        return CronTrigger(minute=minute, hour=hour, day=day, month=month, day_of_week=days, timezone=UTC)
    except CrontabError:
        raise
    except ValueError as error:
        raise CrontabError(f"{str(error)[:1].lower()}{str(error)[1:]}; see crontab(5)") from None


def next_time(expression: str, since: datetime) -> datetime | None:
    """Return the first wall-clock time of an expression from `since` on, both passed as UTC; None if there is none."""
    found: datetime | None = trigger(expression).get_next_fire_time(None, since)
    return found


def _weekdays(field: str) -> str:
    """Return the days of a week by their names: in a crontab 0 and 7 are Sunday, for the trigger 0 is Monday."""
    if field == "*":
        return field
    days = sorted({day % 7 for item in field.split(",") for day in _days_of(item)})
    return ",".join(_DAYS[day] for day in days)


def _days_of(item: str) -> range:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise CrontabError(f'has no such days of the week as "{item}"; write for example 1-5 or mon-fri')
    first, last, step = match.groups()
    begin = 0 if first == "*" else _day(first)
    end = 6 if first == "*" or (step and last is None) else begin if last is None else _day(last)
    # A week that begins on Monday ends on a Sunday that is 7.
    end = 7 if end == 0 and begin > 0 and last is not None else end
    if end < begin:
        raise CrontabError(f'has the days of the week "{item}" in the wrong order; write two ranges')
    return range(begin, end + 1, int(step or 1))


def _day(word: str) -> int:
    if word.isdecimal():
        return int(word)
    if word not in _DAYS:
        raise CrontabError(f'has no day of the week "{word}"; write sun, mon, tue, wed, thu, fri or sat')
    return _DAYS.index(word)
