"""When a budget's sum begins anew."""

from datetime import UTC, datetime

import pytest

from agent.domain.record import budget
from agent.domain.record.budget import Window


@pytest.mark.parametrize(
    ("at", "day", "month"),
    [
        ("2026-11-20T12:34:56.000789+00:00", "2026-11-21", "2026-12-01"),
        ("2026-12-31T23:59:59.999999+00:00", "2027-01-01", "2027-01-01"),
        ("2028-02-28T00:00:00+00:00", "2028-02-29", "2028-03-01"),
        ("2027-01-31T01:00:00+00:00", "2027-02-01", "2027-02-01"),
        ("2027-07-01T00:00:00+00:00", "2027-07-02", "2027-08-01"),
        ("2027-07-01T01:00:00+02:00", "2027-07-01", "2027-07-01"),
    ],
)
def test_days_and_months_end_at_midnight_utc(at: str, day: str, month: str) -> None:
    ends = [budget.end(window, datetime.fromisoformat(at)) for window in (Window.DAY, Window.MONTH)]
    assert ends == [datetime.fromisoformat(f"{date}T00:00:00+00:00") for date in (day, month)]


@pytest.mark.parametrize("window", [Window.HOUR, Window.TOTAL])
def test_a_rate_and_a_total_never_begin_anew(window: Window) -> None:
    assert budget.end(window, datetime(2027, 1, 31, tzinfo=UTC)) is None
