import asyncio
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.markets import market_errors
from agent.markets.pace import LONGEST_PENALTY, Lane, Pace, RowBudget

START = datetime(2026, 11, 5, 22, 0, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 6, tzinfo=UTC)


@pytest.fixture
def clock() -> SteppedClock:
    return SteppedClock(START)


async def test_a_free_lane_lets_a_call_leave_at_once(clock: SteppedClock) -> None:
    pace = Pace(clock, {"create": Lane(4.5)})
    # Not even a turn of the event loop: a coroutine that never waits ends at its first step.
    turn = pace.turn("create")
    with pytest.raises(StopIteration):
        turn.send(None)
    assert clock.monotonic() == 0.0


async def test_calls_on_a_lane_keep_its_interval(clock: SteppedClock) -> None:
    pace = Pace(clock, {"create": Lane(4.5)})
    left = []
    for _ in range(4):
        await pace.turn("create")
        left.append(clock.monotonic())
    assert left == pytest.approx([0.0, 4.5, 9.0, 13.5])


async def test_lanes_do_not_wait_for_each_other(clock: SteppedClock) -> None:
    pace = Pace(clock, {"create": Lane(4.5), "destroy": Lane(3.0)})
    await pace.turn("create")
    await pace.turn("destroy")
    await pace.turn("unheard of")
    assert clock.monotonic() == 0.0


async def test_a_lane_with_burst_lets_so_many_go_in_each_interval(clock: SteppedClock) -> None:
    pace = Pace(clock, {"search": Lane(10.0, burst=4)})
    left = []
    for _ in range(6):
        await pace.turn("search")
        left.append(clock.monotonic())
    assert left == pytest.approx([0.0, 0.0, 0.0, 0.0, 10.0, 10.0])


async def test_the_delay_of_calls_is_the_wait_that_they_would_have(clock: SteppedClock) -> None:
    pace = Pace(clock, {"search": Lane(10.0, burst=4)})
    assert pace.delay("search", 4) == 0.0
    for _ in range(3):
        await pace.turn("search")
        clock.advance(1.0)
    assert [pace.delay("search", calls) for calls in (1, 2, 3, 4)] == [0.0, 7.0, 8.0, 9.0]
    assert pace.delay("search", 40) == 9.0
    pace.close("search", None)
    assert pace.delay("search", 1) == 0.0
    assert pace.delay("unheard of", 9) == 0.0


async def test_urgent_calls_go_first(clock: SteppedClock) -> None:
    pace = Pace(clock, {"state": Lane(1.0)})
    order: list[str] = []

    async def call(name: str, *, is_urgent: bool = False) -> None:
        await pace.turn("state", door=name if is_urgent else "")
        order.append(name)

    await pace.turn("state")
    await asyncio.gather(
        call("resume 1"), call("resume 2"), call("pause 1", is_urgent=True), call("pause 2", is_urgent=True)
    )
    assert order == ["pause 1", "pause 2", "resume 1", "resume 2"]


async def test_a_cancelled_call_gives_its_place_away(clock: SteppedClock) -> None:
    pace = Pace(clock, {"state": Lane(1.0)})
    await pace.turn("state")
    waiting = asyncio.ensure_future(pace.turn("state"))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await pace.turn("state")
    assert waiting.cancelled()
    assert clock.monotonic() == pytest.approx(1.0)


async def test_a_lane_closed_for_long_is_throttled_until_then(clock: SteppedClock) -> None:
    pace = Pace(clock, {"create": Lane(4.5)})
    until = pace.close("create", START + timedelta(seconds=60))
    with pytest.raises(market_errors.Throttled) as caught:
        await pace.turn("create")
    assert caught.value.until == until == START + timedelta(seconds=60)
    clock.advance(55.0)
    await pace.turn("create")
    assert clock.monotonic() == 60.0


async def test_a_lane_closed_for_short_is_waited_for(clock: SteppedClock) -> None:
    pace = Pace(clock, {"state": Lane(1.0)})
    pace.close("state", START + timedelta(seconds=8))
    await pace.turn("state")
    assert clock.monotonic() == pytest.approx(8.0)


async def test_a_lane_closed_while_calls_wait_sends_them_away(clock: SteppedClock) -> None:
    pace = Pace(clock, {"state": Lane(5.0)})
    await pace.turn("state")
    waiting = asyncio.ensure_future(pace.turn("state"))
    await asyncio.sleep(0)
    pace.close("state", START + timedelta(minutes=5))
    with pytest.raises(market_errors.Throttled):
        await waiting


def test_a_refusal_without_a_time_closes_for_the_penalty(clock: SteppedClock) -> None:
    pace = Pace(clock, {"create": Lane(4.5, penalty=12.0)})
    assert pace.close("create", None) == START + timedelta(seconds=12)


@pytest.mark.parametrize(("hint", "seconds"), [(-500, 0.0), (10**9, 25 * 3600.0)])
async def test_an_absurd_time_is_bounded(clock: SteppedClock, hint: int, seconds: float) -> None:
    pace = Pace(clock, {"search": Lane(4.5, longest=LONGEST_PENALTY)}, patience=math.inf)
    pace.close("search", START + timedelta(seconds=hint))
    await pace.turn("search")
    assert clock.monotonic() == seconds


@pytest.mark.parametrize("hint", [3600, 31_536_000, 10**9])
async def test_one_answer_silences_a_lane_for_a_minute_at_most(clock: SteppedClock, hint: int) -> None:
    pace = Pace(clock, {"list": Lane(1.0)}, patience=math.inf)
    assert pace.close("list", START + timedelta(seconds=hint)) == START + timedelta(seconds=60)
    await pace.turn("list")
    assert clock.monotonic() == 60.0


async def test_an_urgent_call_heeds_its_own_refusal_alone(clock: SteppedClock) -> None:
    pace = Pace(clock, {"v2": Lane(0.0)})
    pace.close("v2", START + timedelta(hours=1))
    await pace.turn("v2", door="stop 1")
    pace.close("v2", START + timedelta(hours=1), door="stop 1")
    with pytest.raises(market_errors.Throttled):
        await pace.turn("v2", door="stop 1")
    await pace.turn("v2", door="stop 2")
    assert clock.monotonic() == 0.0
    clock.advance(60.0)
    await pace.turn("v2", door="stop 1")
    await pace.turn("v2")


def test_a_quota_is_a_days_at_most(clock: SteppedClock) -> None:
    rows = RowBudget(clock, budget=100)
    rows.spend_all(START + timedelta(days=365))
    clock.advance(25 * 3600)
    assert rows.grant(1) == 1


@given(st.lists(st.floats(0.0, 30.0), max_size=30), st.floats(0.5, 20.0), st.integers(1, 5))
def test_no_window_holds_more_calls_than_the_lane_allows(gaps: list[float], interval: float, burst: int) -> None:
    clock = SteppedClock(START)
    pace = Pace(clock, {"x": Lane(interval, burst)})
    left: list[float] = []

    async def calls() -> None:
        for gap in gaps:
            clock.advance(gap)
            await pace.turn("x")
            left.append(clock.monotonic())

    asyncio.run(calls())
    for first, last in zip(left, left[burst:], strict=False):
        assert last - first >= interval - 1e-5


def test_rows_are_granted_up_to_the_budget_of_the_day(clock: SteppedClock) -> None:
    rows = RowBudget(clock, budget=100)
    assert rows.grant(64) == 64
    rows.count(64)
    assert (rows.rows_today, rows.grant(64)) == (64, 36)
    rows.count(36)
    with pytest.raises(market_errors.Throttled) as caught:
        rows.grant(1)
    assert caught.value.until == MIDNIGHT


def test_a_question_that_needs_more_rows_than_are_left_is_not_asked(clock: SteppedClock) -> None:
    rows = RowBudget(clock, budget=100)
    rows.count(99)
    assert rows.grant(8) == 1
    with pytest.raises(market_errors.Throttled):
        rows.grant(8, least=2)


def test_a_new_day_begins_at_midnight_utc(clock: SteppedClock) -> None:
    rows = RowBudget(clock, budget=100)
    rows.count(100)
    clock.advance(2 * 3600 - 1)
    assert rows.rows_today == 100
    clock.advance(1)
    assert (rows.rows_today, rows.grant(10)) == (0, 10)


def test_the_markets_word_ends_the_day_for_us(clock: SteppedClock) -> None:
    rows = RowBudget(clock, budget=100)
    rows.spend_all(MIDNIGHT)
    with pytest.raises(market_errors.Throttled) as caught:
        rows.grant(1)
    assert caught.value.until == MIDNIGHT
    clock.advance(2 * 3600)
    assert rows.grant(1) == 1
