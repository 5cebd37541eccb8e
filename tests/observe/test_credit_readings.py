"""A sudden fall of the credit is confirmed before it counts; a slow one counts at once."""

import pytest

from agent.domain import money
from agent.observe.credit_readings import PATIENCE_SECONDS, CreditReadings


def taken(*readings: float | None, every: float = 300.0, recorded: float | None = None) -> list[float | None]:
    """Return the credit before an unconfirmed fall after each reading, in dollars."""
    kept, found = CreditReadings(None if recorded is None else money.usd(recorded)), []
    for number, dollars in enumerate(readings):
        before = kept.take(None if dollars is None else money.usd(dollars), number * every)
        found.append(None if before is None else before.dollars)
    return found


@pytest.mark.parametrize(
    "readings", [(0.5,), (100, 60, 31, 16), (3, 1.5, 0.1, -0.4), (0.1, 100), (None, 0), (100, None)]
)
def test_a_first_reading_a_rise_and_a_slow_fall_are_believed_at_once(readings: tuple[float | None, ...]) -> None:
    assert taken(*readings) == [None] * len(readings)


@pytest.mark.parametrize("wrong", [0.0, -5.0, 1.0, 49.0])
def test_a_sudden_fall_is_not_believed_and_leaves_nothing_behind(wrong: float) -> None:
    assert taken(100, wrong, wrong, 99, 98) == [None, 100, 100, None, None]


def test_a_sudden_fall_is_believed_once_it_has_been_shown_long_enough() -> None:
    every = PATIENCE_SECONDS / 3
    assert taken(100, 1, 2, 1, 1, 0.5, every=every) == [None, 100, 100, 100, None, None]


def test_the_first_reading_of_a_process_is_judged_by_the_credit_of_the_one_before() -> None:
    assert taken(0.01, 100, recorded=100) == [100, None]
    assert taken(99.5, 99, recorded=100) == [None, None]
