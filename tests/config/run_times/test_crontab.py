"""Crontab expressions as crontab(5) reads them: above all, 0 and 7 are Sunday."""

import datetime as dt

import pytest

from agent.config.run_times import crontab

MONDAY = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)


def days(expression: str) -> list[str]:
    found, at = [], MONDAY
    for _ in range(7):
        at = crontab.next_time(expression, at)  # type: ignore[assignment]
        found.append(f"{at:%a}")
        at += dt.timedelta(minutes=1)
    return found


@pytest.mark.parametrize(
    ("field", "week"),
    [
        ("*", "Mon Tue Wed Thu Fri Sat Sun"),
        ("1-5", "Mon Tue Wed Thu Fri Mon Tue"),
        ("0", "Sun Sun Sun Sun Sun Sun Sun"),
        ("7", "Sun Sun Sun Sun Sun Sun Sun"),
        ("5-7", "Fri Sat Sun Fri Sat Sun Fri"),
        ("6-0", "Sat Sun Sat Sun Sat Sun Sat"),
        ("sat,sun", "Sat Sun Sat Sun Sat Sun Sat"),
        ("mon-FRI", "Mon Tue Wed Thu Fri Mon Tue"),
        ("fri-sun", "Fri Sat Sun Fri Sat Sun Fri"),
        ("*/2", "Tue Thu Sat Sun Tue Thu Sat"),
        ("1-5/2", "Mon Wed Fri Mon Wed Fri Mon"),
        ("0,3", "Wed Sun Wed Sun Wed Sun Wed"),
    ],
)
def test_days_of_the_week_are_those_of_a_crontab(field: str, week: str) -> None:
    assert " ".join(days(f"0 20 * * {field}")) == week


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("", "must have the five fields of a crontab"),
        ("@daily", "must have the five fields of a crontab"),
        ("0 20 * *", "must have the five fields of a crontab"),
        ("0 20 * * 1-5 2026", "must have the five fields of a crontab"),
        ("0 25 * * *", "the last value (25) is higher than the maximum value (23)"),
        ("0 20 1 * 1", "names days of the month and days of the week; write a window for each of the two"),
        ("0 20 * * 8", 'has no such days of the week as "8"'),
        ("0 20 * * 5-1", 'has the days of the week "5-1" in the wrong order'),
        ("0 20 * * foo", 'has no day of the week "foo"'),
        ("0 20 ? * *", "must have the five fields of a crontab"),
    ],
)
def test_what_is_no_crontab(expression: str, told: str) -> None:
    with pytest.raises(crontab.CrontabError) as error:
        crontab.trigger(expression)
    assert told in str(error.value)


def test_a_day_that_no_year_has_is_never() -> None:
    assert crontab.next_time("0 0 30 2 *", dt.datetime(9998, 1, 1, tzinfo=dt.UTC)) is None
