"""When a job is done within windows, budgets and running time."""

import datetime as dt

import pytest

from agent.decide.estimate.completion import Allowance, Cap, Completion, completion
from agent.domain import money
from agent.domain.record.budget import Thresholds

MONDAY = dt.datetime(2026, 11, 23, tzinfo=dt.UTC)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
RATE = money.per_hour("0.50")
ALWAYS = [(MONDAY, MONDAY + 366 * DAY)]
NIGHTS = [(MONDAY + day * DAY + 20 * HOUR, MONDAY + (day + 1) * DAY + 8 * HOUR) for day in range(30)]


def capped(**amounts: str) -> Allowance:
    hard = {key: (money.per_hour if key == "per_hour" else money.usd)(amount) for key, amount in amounts.items()}
    return Allowance((Cap("limits", Thresholds(**hard)),))  # type: ignore[arg-type]


def test_without_bounds_a_job_runs_through() -> None:
    assert completion(30, RATE, ALWAYS, Allowance()) == Completion(MONDAY + 30 * HOUR, 30.0)


def test_a_job_waits_for_its_windows() -> None:
    assert completion(30, RATE, NIGHTS, Allowance()).at == MONDAY + 2 * DAY + 26 * HOUR


def test_a_budget_of_the_day_is_waited_for() -> None:
    found = completion(10, RATE, ALWAYS, capped(per_day="2"))
    assert found == Completion(MONDAY + 2 * DAY + 2 * HOUR, 10.0, "", ("limits.max_per_day",))


def test_windows_and_a_budget_of_the_day_bound_together() -> None:
    found = completion(10, RATE, NIGHTS, capped(per_day="2"))
    # 4 hours until midnight of each day, which are all that the day's $2 pay for.
    assert (found.at, found.waits_for) == (MONDAY + 2 * DAY + 2 * HOUR, ("limits.max_per_day",))


@pytest.mark.parametrize(
    ("allowance", "stopped_by", "hours"),
    [
        (capped(total="3"), "limits.max_total", 6.0),
        (Allowance(max_running=7 * HOUR), "max_running", 7.0),
        (capped(per_hour="0.40"), "limits.max_per_hour", 0.0),
    ],
)
def test_what_stops_a_job_for_good(allowance: Allowance, stopped_by: str, hours: float) -> None:
    assert completion(10, RATE, ALWAYS, allowance) == Completion(None, hours, stopped_by)


def test_a_budget_of_the_month_is_waited_for() -> None:
    found = completion(30, RATE, ALWAYS, capped(per_month="10"))
    assert found.at == dt.datetime(2026, 12, 1, tzinfo=dt.UTC) + 10 * HOUR


def test_a_job_that_fits_nowhere_is_not_done() -> None:
    assert completion(500, RATE, NIGHTS[:2], Allowance()) == Completion(None, 24.0)
