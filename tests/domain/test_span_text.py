"""Lengths of time in words."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain import span_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (-5, "0 s"),
        (0.9, "0 s"),
        (40, "40 s"),
        (144, "2 min 24 s"),
        (2700, "45 min"),
        (7205, "2 h"),
        (7800, "2 h 10 min"),
        (86400, "1 day"),
        (273600, "3 days 4 h"),
        (259205, "3 days"),
    ],
)
def test_two_largest_units(seconds: float, text: str) -> None:
    assert span_text.of(timedelta(seconds=seconds)) == text


@given(st.integers(0, 10**8))
def test_what_is_not_said_is_less_than_the_smaller_unit_that_is_said(seconds: int) -> None:
    sizes = {"day": 86400, "days": 86400, "h": 3600, "min": 60, "s": 1}
    words = span_text.of(timedelta(seconds=seconds)).split()
    said = sum(int(count) * sizes[unit] for count, unit in zip(words[::2], words[1::2], strict=True))
    second = {86400: 3600, 3600: 60, 60: 1, 1: 1}[sizes[words[1]]]
    assert 0 <= seconds - said < second
