"""Several pools by hand, the bound against every rule, deadlines kept, and nothing seen of the future."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.lab.pools import multi_pool_optimum, play, pool_place, pools_problem, uniform
from agent.lab.pools.pool_terms import HOUR, Course, PoolsCase, Terms

RULES = sorted(pools_problem.POLICIES)


def case(
    up: Sequence[Sequence[int]],
    *,
    work: float = 2.0,
    overhead: float = 0.5,
    egress: float = 1.0,
    deadline: float = 5.0,
    ask: float = 10.0,
) -> PoolsCase:
    """Return a case of hourly ticks; `up` by pool; pool i costs 1 + i $/h; every move costs the same egress."""
    flags = np.array(up, dtype=bool).T
    ticks, pools = flags.shape
    names = tuple(f"pool{number}" for number in range(pools))
    moves = (np.ones((pools, pools)) - np.eye(pools)) * egress
    terms = Terms(names, HOUR, round(work * HOUR), round(deadline * HOUR), round(overhead * HOUR), moves)
    spot = np.tile(1.0 + np.arange(pools), (ticks, 1))
    return PoolsCase("case", "cluster", terms, Course(flags, spot, np.full((ticks, pools), ask)))


TWO = ([1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0])
"""The first pool for an hour, then the second for two."""


@pytest.mark.parametrize(("egress", "best", "eager"), [(1.0, 6.0, 6.0), (12.0, 14.0, 17.0)])
def test_two_pools_and_a_checkpoint_that_is_moved_by_hand(egress: float, best: float, eager: float) -> None:
    # Half an hour of work in the first pool (1 $), the move, then half and a whole hour in the second (2 $ each).
    # Dear to move: leave the first out, and end on demand where the checkpoint lies: 2 + 2 + 10.
    here = case(TWO, egress=egress)
    lived = play.play(here, uniform.Uniform(here.terms))
    assert multi_pool_optimum.cost(here) == pytest.approx(best)
    assert lived.cost == pytest.approx(eager)
    assert (lived.egress, lived.ticks) == (egress, 3)
    assert not play.is_late(lived, here.terms)


def test_on_demand_is_rented_where_it_is_cheapest_and_of_several_where_the_checkpoint_lies() -> None:
    prices = np.array([3.0, 2.0, 2.0])
    assert [play.fallback(prices, where) for where in (-1, 0, 1, 2)] == [1, 1, 1, 2]


def test_zones_of_one_region_exchange_for_nothing() -> None:
    moves = pool_place.egress(["us-east-1a_v100_1", "us-east-1c_v100_1", "us-east4-a", "us-east4-b"], 50, 0.02)
    assert moves.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]


def test_a_pool_without_capacity_is_refused() -> None:
    class Blind:
        def choose(self, _: play.Sight, /) -> play.Choice:
            return play.Choice(play.Mode.INTERRUPTIBLE, 1)

    with pytest.raises(play.Refused):
        play.play(case(TWO), Blind())


flags = st.lists(st.lists(st.integers(0, 1), min_size=16, max_size=16), min_size=1, max_size=3)
worlds = st.builds(
    case,
    flags,
    work=st.sampled_from([2.0, 3.25, 5.0]),
    overhead=st.sampled_from([0.0, 0.25, 0.5, 1.5]),
    egress=st.sampled_from([0.0, 0.5, 3.0]),
    deadline=st.sampled_from([7.0, 9.0, 12.0]),
)


@given(worlds)
def test_no_rule_is_cheaper_than_the_bound_and_none_is_late(here: PoolsCase) -> None:
    best = multi_pool_optimum.cost(here)
    for name in RULES:
        lived = play.play(here, pools_problem.POLICIES[name](here.terms, 50.0))
        assert not play.is_late(lived, here.terms), name
        assert lived.cost >= best - 1e-9, name


@given(worlds, st.integers(1, 11), st.integers(0, 2**32 - 1))
def test_no_rule_sees_the_future(here: PoolsCase, known: int, seed: int) -> None:
    lots = np.random.default_rng(seed)
    noise = here.course.up.copy()
    noise[known:] = lots.random(noise[known:].shape) < 0.5
    prices = here.course.spot.copy()
    prices[known:] = lots.uniform(0.5, 9.0, prices[known:].shape)
    other = replace(here, course=Course(noise, prices, here.course.on_demand))
    for name in RULES:
        lived, again = (play.play(each, pools_problem.POLICIES[name](each.terms, 50.0)) for each in (here, other))
        assert lived.choices[:known] == again.choices[:known], name
