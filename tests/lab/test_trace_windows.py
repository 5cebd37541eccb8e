"""Windows cut from traces: their beginnings, lengths and content."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.lab.bench import blocks
from agent.lab.jobs import trace_windows
from agent.lab.jobs.job_terms import HOUR
from agent.lab.jobs.trace_windows import Cut, Prices
from agent.lab.traces.trace_files import Trace

START = datetime(2026, 1, 1, tzinfo=UTC)


def trace(pool: str, available: list[int], gap: int = 195) -> Trace:
    """Return a trace whose price is the number of its tick."""
    count = len(available)
    prices = np.arange(count, dtype=float)
    return Trace(pool, gap, START, "V100", 1, np.array(available), prices, np.full(count, np.nan))


@given(st.integers(1, 2000), st.integers(1, 300), st.floats(200.0, 90_000.0), st.sampled_from([60, 195, 600]))
def test_each_begins_at_the_tick_nearest_to_its_instant_and_none_reaches_over_the_end(
    ticks: int, length: int, stride: float, tick: int
) -> None:
    found = list(trace_windows.begins(ticks, length, stride, tick))
    assert all(abs(first * tick - count * stride) <= tick / 2 + 1e-6 for count, first in enumerate(found))
    assert all(0 <= first <= ticks - length for first in found)
    assert round(len(found) * stride / tick) + length > ticks


def test_windows_of_pools_that_share_their_time_hold_what_each_had() -> None:
    both = [trace("a", [0, 1, 2, 3] * 100), trace("b", [3, 2, 1] * 100)]
    hours, stride = 3.0, 2.0
    found = list(trace_windows.cut(both, Cut(hours, stride * HOUR, Prices(on_demand=3.06), instances=2)))
    # Ticks of 195 s: three hours are 55 whole ones; 300 ticks are as many as the shorter of the two has.
    assert {len(each.course.up) for each in found} == {55 + blocks.SPARE_TICKS}
    assert [each.first for each in found] == [0, 37, 74, 111, 148, 185]
    assert found[1].start == START + timedelta(seconds=37 * 195)
    assert found[1].course.up[:4].tolist() == [[False, True], [True, False], [True, True], [False, True]]
    assert found[1].course.spot[0].tolist() == [37.0, 37.0]
    assert set(found[1].course.on_demand.ravel()) == {3.06}
    assert found[1].course.rows[2] == ((True, True), (39.0, 39.0), (3.06, 3.06))


def test_prices_that_are_given_stand_for_the_traces_own() -> None:
    (only,) = trace_windows.cut([trace("a", [1] * 79)], Cut(3.0, 1e6, Prices(0.5, 2.0)))
    assert (set(only.course.spot.ravel()), set(only.course.on_demand.ravel())) == ({0.5}, {2.0})
    assert only.span == (START, START + timedelta(seconds=79 * 195))


@pytest.mark.parametrize(("ticks", "count"), [(78, 0), (79, 1)])
def test_a_record_shorter_than_a_window_has_none(ticks: int, count: int) -> None:
    assert len(list(trace_windows.cut([trace("a", [1] * ticks)], Cut(3.0, HOUR)))) == count
