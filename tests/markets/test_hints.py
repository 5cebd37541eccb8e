"""Hints of when to call again: whatever their text, the answer is a moment within a day or none."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.markets import hints

NOW = datetime(2026, 11, 5, 22, 0, tzinfo=UTC)
DAY = timedelta(hours=25)


@pytest.mark.parametrize(
    ("hint", "seconds"),
    [("0", 0), ("5", 5), ("1.5", 1.5), ("31536000", 90_000), ("inf", 90_000), ("1e999", 90_000)],
)
def test_seconds_are_bounded(hint: object, seconds: float) -> None:
    assert hints.after(hint, NOW) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "hint", ["", "soon", "nan", "-1", "-inf", None, True, [], {}, "Thu, 99 Nov 99999 00:00:00 GMT"]
)
def test_junk_is_no_hint(hint: object) -> None:
    assert hints.after(hint, NOW) is None


def test_a_date_without_a_zone_is_utc() -> None:
    assert hints.after("Thu, 05 Nov 2026 22:01:00 -0000", NOW) == NOW + timedelta(minutes=1)


@given(st.text(max_size=60) | st.floats() | st.integers())
def test_nothing_raises(hint: object) -> None:
    told = hints.after(hint, NOW)
    assert told is None or told.tzinfo is not None


def test_a_number_too_large_for_a_float_is_bounded_too() -> None:
    assert hints.after(10**400, NOW) == NOW + DAY
