"""The finite-horizon programme: small cases by hand, and properties that hold everywhere."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.deadline import hazards, single_pool_dp, single_pool_policy, sized_cache
from agent.domain.market.tenure import Tenure

HALF = hazards.Hazards(edges=(0.0,), losses=(math.log(2),), returns=(math.log(4 / 3),))
"""In an hour capacity is lost with a chance of a half and comes back with a quarter."""
HOURLY = single_pool_dp.Setting(step=1.0, span=6.0, slack=4.0, start_on_demand=0.0, start_interruptible=0.0, ratio=0.5)
TEN_MINUTES = single_pool_dp.Setting(
    1 / 6, span=12.0, slack=6.0, start_on_demand=0.2, start_interruptible=0.2, ratio=0.32
)
NODES = 0.05
"""What straight lines between nodes may be off, in hours of on-demand."""
SHIPPED = single_pool_policy.Policy(TEN_MINUTES, hazards.SHIPPED)


def standing(
    left: float, todo: float, tenure: Tenure | None = None, *, start: float = 0.0, gap: float = 1.0
) -> single_pool_policy.JobState:
    return single_pool_policy.JobState(left, todo, tenure, 0.0, start, start, gap)


def believed(pool: hazards.Hazards, *, is_up: bool, age: float = 0.0) -> hazards.Belief:
    return hazards.first(pool, is_up=is_up, age=age)


def test_three_hours_for_two_of_work_by_hand() -> None:
    found = single_pool_policy.Policy(HOURLY, HALF).costs(standing(3, 2), believed(HALF, is_up=False))
    # One hour later, with an hour to spare: 0.5 with capacity (work it), 0.875 without (wait: 1/4 x 0.5 + 3/4 x 1).
    # With none to spare: 1.25 with capacity (0.5, then 0.5 or 1), 1.875 without (1, then 1/4 x 0.5 + 3/4 x 1).
    assert found.wait == pytest.approx(0.25 * 1.25 + 0.75 * 1.875, abs=1e-5)
    assert found.on_demand == pytest.approx(1 + 0.25 * 0.5 + 0.75 * 0.875, abs=1e-5)
    assert found.interruptible == math.inf


def test_three_hours_for_two_of_work_with_capacity_by_hand() -> None:
    found = single_pool_policy.Policy(HOURLY, HALF).costs(standing(3, 2), believed(HALF, is_up=True))
    assert found.interruptible == pytest.approx(0.5 + 0.5 * 0.5 + 0.5 * 0.875, abs=1e-5)
    assert found.on_demand == pytest.approx(1 + 0.5 * 0.5 + 0.5 * 0.875, abs=1e-5)
    assert found.wait == pytest.approx(0.5 * 1.25 + 0.5 * 1.875, abs=1e-5)


def test_what_may_be_late_costs_infinitely_much_and_on_demand_is_the_last_resort() -> None:
    kernel = single_pool_policy.Policy(TEN_MINUTES, hazards.SHIPPED)
    tight = standing(5.25, 5.0, start=0.2, gap=1 / 6)
    for is_up in (True, False):
        belief = believed(hazards.SHIPPED, is_up=is_up, age=5.0)
        found = kernel.costs(tight, belief)
        assert (found.wait, found.interruptible) == (math.inf, math.inf)
        assert kernel.choose(tight, belief) is Tenure.ON_DEMAND
    over = standing(4.0, 5.0, start=0.2, gap=1 / 6)
    assert kernel.choose(over, believed(hazards.SHIPPED, is_up=True)) is Tenure.ON_DEMAND


def test_a_pool_that_was_never_lost_does_not_soften_the_deadline() -> None:
    never = hazards.Hazards(edges=(0.0,), losses=(0.0,), returns=(10.0,))
    kernel = single_pool_policy.Policy(TEN_MINUTES, never)
    tight = standing(5.3, 5.0, start=0.2, gap=1 / 6)
    assert kernel.choose(tight, believed(never, is_up=True, age=9.0)) is Tenure.ON_DEMAND
    assert kernel.choose(standing(6.0, 5.0, start=0.2, gap=1 / 6), believed(never, is_up=True)) is Tenure.INTERRUPTIBLE


def test_capacity_that_is_old_is_worth_leaving_on_demand_for_and_young_is_not() -> None:
    at = standing(6.0, 5.0, Tenure.ON_DEMAND, start=0.2, gap=1 / 6)
    assert SHIPPED.choose(at, believed(hazards.SHIPPED, is_up=True, age=8.0)) is Tenure.INTERRUPTIBLE
    brittle = hazards.Hazards(edges=(0.0,), losses=(4.0,), returns=(0.1,))
    kernel = single_pool_policy.Policy(TEN_MINUTES, brittle)
    assert kernel.choose(at, believed(brittle, is_up=True)) is Tenure.ON_DEMAND


def test_waiting_must_save_something_while_slack_is_short_and_anything_while_it_is_not() -> None:
    refused, taken = 0, 0
    for slack in np.linspace(0.4, 3.0, 53):
        for age in (0.0, 0.3, 1.0, 3.0):
            at, belief = (
                standing(8.0 + slack, 8.0, start=0.2, gap=1 / 6),
                believed(hazards.SHIPPED, is_up=False, age=age),
            )
            found = SHIPPED.costs(at, belief)
            saved, choice = found.on_demand - found.wait, SHIPPED.choose(at, belief)
            needed = single_pool_policy.WAIT_GAIN if slack < 8.0 * single_pool_policy.SHORT_SLACK else 0.0
            assert choice is (None if saved >= needed else Tenure.ON_DEMAND), (slack, age)
            refused += choice is Tenure.ON_DEMAND and saved > 0
            taken += choice is None
    assert refused
    assert taken


def test_what_runs_at_the_lower_price_is_kept() -> None:
    at = standing(6.0, 5.0, Tenure.INTERRUPTIBLE, start=0.2, gap=1 / 6)
    assert SHIPPED.choose(at, believed(hazards.SHIPPED, is_up=True)) is Tenure.INTERRUPTIBLE
    found = SHIPPED.costs(at, believed(hazards.SHIPPED, is_up=True))
    assert found.interruptible <= min(found.wait, found.on_demand)


@given(
    todo=st.integers(1, 12).map(lambda halves: halves / 2),
    slack=st.integers(1, 10).map(lambda halves: halves / 2),
    tenure=st.sampled_from((None, Tenure.ON_DEMAND)),
    is_up=st.booleans(),
    age=st.sampled_from((0.0, 0.3, 1.0, 5.0)),
)
def test_less_work_or_more_time_never_costs_more(
    todo: float, slack: float, tenure: Tenure | None, is_up: bool, age: float
) -> None:
    belief = believed(hazards.SHIPPED, is_up=is_up, age=age)

    def least(todo: float, slack: float) -> float:
        found = SHIPPED.costs(standing(todo + slack, todo, tenure, start=0.2, gap=1 / 6), belief)
        return min(found.wait, found.on_demand, found.interruptible)

    here = least(todo, slack)
    assert 0 < here <= todo + 0.2 + 1 / 6 + NODES
    assert least(todo, slack + 0.5) <= here + NODES
    assert least(todo + 0.5, slack) >= here - NODES


def test_a_table_of_seventy_hours_is_of_bounded_size() -> None:
    at = standing(70.0, 48.0, start=0.2, gap=1 / 6)
    setting = single_pool_policy.setting(at, 70.0, 48.0, 0.32)
    assert setting.span / setting.step <= single_pool_policy.MOST_STEPS
    long = single_pool_policy.setting(standing(900.0, 300.0, start=0.2, gap=1 / 6), 900.0, 300.0, 0.32)
    assert long.span / long.step <= single_pool_policy.MOST_STEPS
    assert np.isclose(long.slack, single_pool_policy.MOST_SLACK)


def test_tables_of_many_jobs_are_kept_while_there_is_room_and_those_used_last_the_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = sized_cache.SizedCache[tuple[single_pool_dp.Setting, hazards.Hazards], single_pool_policy.Policy](
        lambda key: single_pool_policy.Policy(*key), single_pool_policy.MOST_BYTES
    )
    monkeypatch.setattr(single_pool_policy, "tables", kept)
    settings = [replace(HOURLY, ratio=place / 100) for place in range(40)]
    first = [single_pool_policy.of(each, HALF) for each in settings]
    assert [single_pool_policy.of(each, HALF) for each in settings] == first, "each is built once"
    kept.most_bytes = 3 * first[0].size
    assert single_pool_policy.of(settings[5], HALF) is first[5]
    assert [single_pool_policy.of(settings[place], HALF) is first[place] for place in (38, 39, 5)] == [True, True, True]
    assert single_pool_policy.of(settings[0], HALF) is not first[0]
    assert single_pool_policy.of(settings[38], HALF) is not first[38], "what was used longest ago went first"
    assert kept.size <= kept.most_bytes
