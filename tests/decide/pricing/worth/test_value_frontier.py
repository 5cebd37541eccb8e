"""The frontier of useful hours against dollars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing.worth import value_frontier
from agent.decide.pricing.worth.value_frontier import Way
from agent.domain.money import UsdPerHour
from tests.support import builders

CHEAP, MIDDLE, DEAR = Way("cheap", 12.0, 1.2), Way("middle", 16.0, 3.2), Way("dear", 24.0, 6.0)
WAYS = st.builds(Way, st.just("way"), st.floats(0.0, 24.0), st.floats(0.0, 20.0))


def test_only_ways_that_some_value_makes_the_best_are_on_it() -> None:
    steps = value_frontier.of_ways([DEAR, MIDDLE, CHEAP], None)
    assert [step.way.name for step in steps] == ["cheap", "dear"]
    assert [step.least_value for step in steps] == pytest.approx([0.1, 0.4])


@pytest.mark.parametrize(
    ("value", "chosen"), [(None, ["cheap"]), ("0.05", []), ("0.39", ["cheap"]), ("0.41", ["dear"])]
)
def test_a_value_sets_the_last_step_that_it_pays_for(value: str | None, chosen: list[str]) -> None:
    worth = None if value is None else builders.per_hour(value)
    steps = value_frontier.of_ways([CHEAP, DEAR], worth)
    assert [step.way.name for step in steps if step.is_set] == chosen


@given(st.lists(WAYS, max_size=12), st.floats(0.0, 3.0))
def test_the_step_that_is_set_earns_the_most_of_all_ways(ways: list[Way], worth: float) -> None:
    value = UsdPerHour(round(worth * 1e6))
    steps = value_frontier.of_ways(ways, value)
    assert [step.least_value for step in steps] == sorted(step.least_value for step in steps)
    earned = [value.dollars * way.hours - way.dollars for way in ways]
    set_ = [value.dollars * step.way.hours - step.way.dollars for step in steps if step.is_set]
    assert sum(set_) == pytest.approx(max([0.0, *earned]), abs=1e-9)
