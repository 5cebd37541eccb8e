"""Offers by net value: what their useful hours are worth less what they cost."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing.worth import net_value
from agent.decide.strategy import Candidate
from agent.domain.money import UsdPerHour
from tests.support import builders

RATES = st.floats(0.05, 1.0)


def candidate(number: int, dollars: float, dlperf: float, useful: float = 5.0) -> Candidate:
    """Build a candidate of so many dollars for its five hours; what it bids is of no matter here."""
    made = builders.candidate(builders.offer(number), gpu_dollars=dollars, useful_hours=useful, dlperf=dlperf)
    plain = msgspec.structs.replace(made.reckoning, disk_dollars=0.0, traffic_dollars=0.0, idle_dollars=0.0)
    return replace(made, reckoning=plain)


def names(found: Iterator[Candidate]) -> list[str]:
    return [each.offer.offer_id for each in found]


def ranked(rows: list[Candidate], worth: str, fastest: float = 100.0) -> list[str]:
    rows = sorted(rows, key=lambda each: each.reckoning.per_useful)
    return names(net_value.best_first([rows], builders.per_hour(worth), fastest))


def test_the_more_an_hour_is_worth_the_more_a_fast_card_counts() -> None:
    slow, fast = candidate(1, 0.5, 40.0), candidate(2, 2.0, 100.0)
    assert ranked([slow, fast], "0.30") == ["a1"]
    assert ranked([slow, fast], "0.45") == ["a1", "a2"]
    assert ranked([slow, fast], "1.00") == ["a2", "a1"]


def test_what_costs_more_than_it_is_worth_is_not_rented() -> None:
    assert ranked([candidate(1, 2.0, 100.0)], "0.30") == []


def test_an_idle_hour_costs_its_time_and_not_money() -> None:
    made = candidate(1, 1.0, 100.0).reckoning
    idle = msgspec.structs.replace(made, idle_dollars=9.0)
    worth = builders.per_hour("0.50")
    assert net_value.per_hour(idle, worth, 100.0) == net_value.per_hour(made, worth, 100.0)


def test_a_host_is_named_once_by_its_better_way() -> None:
    bid, ask = candidate(1, 1.0, 100.0, useful=3.0), candidate(1, 1.2, 100.0)
    found = list(net_value.best_first([[bid], [ask]], builders.per_hour("1.00"), 100.0))
    assert [each.reckoning.useful_hours for each in found] == [5.0]


@given(st.lists(st.tuples(st.floats(0.1, 9.0), st.floats(10.0, 100.0)), min_size=1, max_size=12), RATES)
def test_the_first_one_earns_most_of_all(rows: list[tuple[float, float]], worth: float) -> None:
    value = UsdPerHour(round(worth * 1e6))
    made = [candidate(number, *row) for number, row in enumerate(rows)]
    most = max(net_value.per_hour(each.reckoning, value, 100.0) for each in made)
    made.sort(key=lambda each: each.reckoning.per_useful)
    best = next(net_value.best_first([made], value, 100.0), None)
    assert (best is None) == (most <= 0)
    if best is not None:
        assert net_value.per_hour(best.reckoning, value, 100.0) == pytest.approx(most)
