"""The values that the column types refuse and correct."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.ledger.tables import types


@given(st.datetimes(timezones=st.timezones()))
def test_a_time_of_any_zone_comes_back_as_the_same_instant(at: dt.datetime) -> None:
    column = types.UtcMicros()
    # An hour that comes twice in autumn equals nothing in another zone, so both sides are in UTC.
    assert column.from_column(column.to_column(at)) == at.astimezone(dt.UTC)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        types.micros(dt.datetime(2026, 1, 1))  # noqa: DTZ001


@given(st.text(st.characters(codec=None), max_size=3000))
def test_any_text_becomes_one_that_sqlite_holds(text: str) -> None:
    held = types.clean(text)
    assert len(held) <= types.LONGEST_TEXT
    assert "\0" not in held
    held.encode("utf-8")
    assert types.clean(held) == held


def test_a_lone_surrogate_and_a_nul_are_replaced() -> None:
    assert types.clean("a\ud800b\0c") == "a?b\ufffdc"
