"""Search rows are rationed: the worth of a bar's end, and its limits."""

import itertools
from collections.abc import Callable

import pytest

from agent.observe.search_interval import ASK_AGAIN, EARLY_EVERY, SearchInterval

POLL = 15.0
HOUR = 3600.0


def searches(bars: Callable[[float], tuple[str, ...]], hours: float = 1.0) -> list[float]:
    """Return the instants of the searches of one need that stays, with the bars of each instant."""
    pace = SearchInterval()
    return [at for each in range(int(hours * HOUR / POLL)) if _asks(pace, bars(at := each * POLL), at)]


def _asks(pace: SearchInterval, bars: tuple[str, ...], at: float, key: tuple[str, ...] = ("a",)) -> bool:
    is_due = pace.is_due("train", key, bars, at)
    if is_due:
        pace.count("train", key, bars, at)
    return is_due


FREE = searches(lambda _: ())


def test_a_need_that_stays_is_searched_ever_more_rarely() -> None:
    assert FREE[:4] == [0.0, 15.0, 45.0, 105.0]
    assert {later - sooner for sooner, later in itertools.pairwise(FREE[7:])} == {ASK_AGAIN[-1]}


def test_a_bar_that_begins_brings_no_search() -> None:
    """It cost one at once and began the back-off anew, for a market that may rent nothing."""
    assert searches(lambda at: ("limits",) if at >= HOUR else (), 2.0) == searches(lambda _: (), 2.0)


@pytest.mark.parametrize("began", [0.0, 1000.0])
def test_a_bar_that_ends_brings_one_at_once_and_begins_anew(began: float) -> None:
    """Also one that began after the last search."""
    found = searches(lambda at: ("limits",) if began <= at < HOUR + 30.0 else (), 2.0)
    after = [at - HOUR - 30.0 for at in found if at >= HOUR + 30.0]
    assert after[:4] == FREE[:4]


def test_an_end_right_after_a_search_waits_a_minute_and_is_not_forgotten() -> None:
    last = FREE[-1]
    found = searches(lambda at: ("limits",) if at <= last else (), 1.5)
    assert found[len(FREE)] == last + EARLY_EVERY


@pytest.mark.parametrize("every", [1, 4])
def test_a_bar_that_comes_and_goes_costs_at_most_one_search_a_minute(every: int) -> None:
    """A clock just off in every other answer cost 240 searches an hour."""
    found = searches(lambda at: ("limits",) if int(at / POLL / every) % 2 else (), 3.0)
    assert len([at for at in found if at < HOUR]) <= HOUR / EARLY_EVERY + 3
    settled = [at for at in found if at >= HOUR]
    assert all(later - sooner >= EARLY_EVERY for sooner, later in itertools.pairwise(settled))


def test_another_choice_is_searched_at_once_and_a_forgotten_workload_too() -> None:
    pace = SearchInterval()
    assert _asks(pace, (), 0.0)
    assert not _asks(pace, (), 1.0)
    assert _asks(pace, (), 1.0, ("b",))
    pace.keep(["train"])
    assert not _asks(pace, (), 2.0, ("b",))
    pace.keep([])
    assert _asks(pace, (), 2.0, ("b",))


def test_a_due_search_that_is_not_sent_stays_due() -> None:
    pace = SearchInterval()
    assert pace.is_due("train", ("a",), (), 0.0)
    assert pace.is_due("train", ("a",), (), 1.0)
    assert pace.last("train") == float("-inf")
    pace.count("train", ("a",), (), 1.0)
    assert (pace.last("train"), pace.is_due("train", ("a",), (), 2.0)) == (1.0, False)


def test_a_search_that_fails_is_sent_again_in_a_minute_however_often_it_fails() -> None:
    """After an outage of half an hour an empty slot waited ten minutes more."""
    pace, found = SearchInterval(), []
    for at in (each * POLL for each in range(280)):
        if _asks(pace, (), at):
            found.append(at)
            if at < HOUR:
                pace.fail("train")
    assert {later - sooner for sooner, later in itertools.pairwise(found) if later <= HOUR} == {60.0}
    assert [at for at in found if at >= HOUR] == [HOUR, HOUR + 120.0, HOUR + 360.0]
