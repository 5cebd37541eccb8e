"""The semantics of a tick by hand, and the bound against every plan there is."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.tenure import Tenure
from agent.lab.deadline import deadline_baselines, deadline_ticks, single_pool_optimum, window

HOUR = 3600
SPOT, DEMAND = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND


def stretch(is_up: Sequence[bool], *, gap: int = HOUR, spot: float = 1.0, on_demand: float = 3.0) -> window.Window:
    count = len(is_up)
    return window.Window("pool", 0, gap, tuple(is_up), (spot,) * count, (on_demand,) * count)


def scripted(plan: Sequence[Tenure | None]) -> deadline_ticks.Rule:
    return lambda at: plan[at.tick] if at.tick < len(plan) else None


def test_a_loss_a_wait_and_a_switch_cost_what_they_cost_by_hand() -> None:
    # Hours:        0     1     2      3     4       up at 0, 1 and 3; a start costs half an hour.
    is_up = [True, True, False, True, False, False]
    plan = [SPOT, SPOT, None, SPOT, DEMAND, DEMAND]
    lived = deadline_ticks.run(scripted(plan), stretch(is_up), deadline_ticks.Setting(3 * HOUR, 6 * HOUR, HOUR // 2))
    # Done: 0.5 + 1 + 0 + 0.5 + 0.5 = 2.5 after five ticks; the last half hour ends at 5.5.
    assert lived.finished == 5.5 * HOUR
    assert lived.dollars == 3 * 1.0 + 2 * 3.0
    assert not lived.is_late(deadline_ticks.Setting(3 * HOUR, 6 * HOUR, HOUR // 2))


def test_an_overhead_longer_than_a_tick_carries_over_and_a_loss_loses_it() -> None:
    setting = deadline_ticks.Setting(HOUR, 9 * HOUR, HOUR * 3 // 2)
    held = deadline_ticks.run(scripted([SPOT] * 9), stretch([True] * 9), setting)
    lost = deadline_ticks.run(scripted([SPOT] * 9), stretch([True, False, True, True, True, True]), setting)
    assert (held.finished, lost.finished) == (2.5 * HOUR, 4.5 * HOUR)


def test_interruptible_without_capacity_is_nothing() -> None:
    lived = deadline_ticks.run(scripted([SPOT]), stretch([False]), deadline_ticks.Setting(HOUR, HOUR, 0))
    assert (lived.dollars, lived.finished, lived.tenures) == (0.0, None, (None,))


def test_work_that_ends_after_the_deadline_is_late() -> None:
    setting = deadline_ticks.Setting(HOUR, HOUR, 60)
    assert deadline_ticks.run(scripted([DEMAND, DEMAND]), stretch([True, True]), setting).is_late(setting)


@pytest.mark.parametrize(
    ("is_up", "work", "best"),
    [
        ([True] * 4, 1.5, 2.0),  # two hours of interruptible capacity, half an hour of them the start
        ([True, False, True, False], 1.0, 2.0),  # half an hour in each of two
        ([False] * 4, 1.5, 6.0),  # two hours on demand
        ([True, False, False, False], 2.0, 7.0),  # half an hour, then two hours on demand
    ],
)
def test_the_bound_by_hand(is_up: list[bool], work: float, best: float) -> None:
    setting = deadline_ticks.Setting(round(work * HOUR), 4 * HOUR, HOUR // 2)
    assert single_pool_optimum.cost(stretch(is_up), setting) == pytest.approx(best)


@given(
    is_up=st.lists(st.booleans(), min_size=5, max_size=5),
    prices=st.lists(st.floats(0.5, 4), min_size=5, max_size=5),
    work=st.integers(1, 9),
    allowed=st.integers(9, 12),
    overhead=st.integers(0, 5),
)
def test_no_plan_at_all_is_cheaper_than_the_bound_and_one_reaches_it(
    is_up: list[bool], prices: list[float], work: int, allowed: int, overhead: int
) -> None:
    setting = deadline_ticks.Setting(work * 60, allowed * 60, overhead * 60)
    over = window.Window("pool", 0, 180, tuple(is_up), tuple(prices), (3.0,) * 5)
    lived = [
        deadline_ticks.run(scripted(plan), over, setting) for plan in itertools.product((None, SPOT, DEMAND), repeat=5)
    ]
    in_time = [each.dollars for each in lived if not each.is_late(setting)]
    assert single_pool_optimum.cost(over, setting) == pytest.approx(min(in_time, default=float("inf")))
    held = single_pool_optimum.choices(over, setting)
    assert (held is None) is (not in_time)
    if held is not None:
        best = deadline_ticks.run(scripted(held), over, setting)
        assert best.dollars == pytest.approx(min(in_time))
        assert not best.is_late(setting)


@given(
    is_up=st.lists(st.booleans(), min_size=40, max_size=40),
    overhead=st.integers(0, 30),
    name=st.sampled_from([*deadline_baselines.PLAIN, *deadline_baselines.NUMBERED]),
)
def test_published_rules_are_never_late_where_there_is_slack_and_never_below_the_bound(
    is_up: list[bool], overhead: int, name: str
) -> None:
    setting = deadline_ticks.Setting(200 * 60, 350 * 60, overhead * 60)
    over = stretch(is_up, gap=600)
    lived = deadline_ticks.run(deadline_baselines.rule(name, deadline_baselines.NUMBERED.get(name)), over, setting)
    assert not lived.is_late(setting)
    assert lived.dollars >= single_pool_optimum.cost(over, setting) - 1e-9
