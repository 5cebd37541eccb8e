"""The worth of an hour short, found from a target and from what was seen: by hand, monotone, bounded."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.service import availability_dial
from agent.domain import warm_time
from agent.domain.warm_time import Stretch, WarmTime
from tests.support import builders

HOUR = 3600 * warm_time.MICROS
LAW = availability_dial.Law(first=0.24, gain=0.5, most=3.0)
stretches = st.lists(
    st.tuples(st.integers(1, 6 * HOUR), st.floats(0.0, 1.0)).map(lambda two: (two[0], int(two[0] * two[1]))),
    max_size=60,
).map(lambda rows: tuple(Stretch(number, *row) for number, row in enumerate(rows)))
targets = st.floats(0.5, 0.9999)


def record(*rows: tuple[float, float]) -> WarmTime:
    """A record of stretches, each with its hours wanted and short."""
    found = (Stretch(number, int(hours * HOUR), int(short * HOUR)) for number, (hours, short) in enumerate(rows))
    return WarmTime("serve", builders.NOW, stretches=tuple(found))


@pytest.mark.parametrize(
    ("target", "rows", "worth"),
    [
        (0.99, (), 24.0),
        (0.999, (), 240.0),
        # Just what the target allows changes nothing.
        (0.99, ((6.0, 0.06),), 24.0),
        # A day without any time short: half a step down.
        (0.99, ((6.0, 0.0),) * 4, 24.0 * math.exp(-0.5)),
        # Twice the allowance of a day: half a step up.
        (0.99, ((6.0, 0.12),) * 4, 24.0 * math.exp(0.5)),
        # A month of calm is bounded, and the first bad hour after it counts in full: an hour is four days' allowance.
        (0.99, (((24.0, 0.0),) * 30), 24.0 * math.exp(-3.0)),
        (0.99, (*(((24.0, 0.0),) * 30), (1.0, 1.0)), 24.0 * math.exp(-3.0 + 0.5 * 0.99 / 0.24)),
        (0.99, (((24.0, 24.0),) * 30), 24.0 * math.exp(3.0)),
        (0.9999, (((24.0, 24.0),) * 30), availability_dial.MOST_WORTH),
    ],
)
def test_the_worth_follows_the_time_short_beyond_the_allowance(
    target: float, rows: tuple[tuple[float, float], ...], worth: float
) -> None:
    assert availability_dial.of(target, record(*rows), LAW).worth == pytest.approx(worth)


@given(stretches, targets, targets)
def test_a_higher_target_never_lowers_the_worth(rows: tuple[Stretch, ...], one: float, other: float) -> None:
    low, high = sorted([one, other])
    least = availability_dial.worth(low, rows, LAW)
    assert availability_dial.worth(high, rows, LAW) >= least * (1 - 1e-9)


@given(stretches, targets, st.integers(1, 6 * HOUR))
def test_more_time_short_never_lowers_the_worth(rows: tuple[Stretch, ...], target: float, more: int) -> None:
    after = Stretch(len(rows), more, 0), Stretch(len(rows), more, more)
    calm, bad = (availability_dial.worth(target, (*rows, each), LAW) for each in after)
    assert bad >= calm


@given(stretches, targets)
def test_a_record_of_the_ledger_gives_the_same_dial(rows: tuple[Stretch, ...], target: float) -> None:
    time = WarmTime("serve", builders.NOW, is_short=True, stretches=rows)
    again = warm_time.decoded(warm_time.encoded(time))
    assert again == time
    assert availability_dial.of(target, again) == availability_dial.of(target, time)


def test_the_sentence_names_target_and_achieved() -> None:
    dial = availability_dial.of(0.99, record((20.0, 0.5)))
    assert dial.availability == pytest.approx(0.975)
    assert dial.wanted_hours == pytest.approx(20.0)
    assert dial.sentence == "a target of 0.99 warm, 0.9750 achieved in 20 h"
    assert availability_dial.of(0.99, None).sentence == "a target of 0.99 warm, nothing recorded yet"
