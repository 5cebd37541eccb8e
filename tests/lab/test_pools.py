"""Several pools by hand, the bound against every rule, deadlines kept, and nothing seen of the future."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.deadline import multi_pool_dp
from agent.domain.market.tenure import Tenure
from agent.lab.jobs import offline_optimum, pool_place, tick_engine, uniform_progress
from agent.lab.jobs.job_terms import HOUR, Course, JobCase, Terms, Window
from agent.lab.pools import own_kernel, pools_problem

RULES = sorted(pools_problem.POLICIES)


def case(
    up: Sequence[Sequence[int]],
    *,
    work: float = 2.0,
    overhead: float = 0.5,
    egress: float = 1.0,
    deadline: float = 5.0,
    ask: float = 10.0,
) -> JobCase:
    """Return a case of hourly ticks; `up` by pool; pool i costs 1 + i $/h; every move costs the same egress."""
    flags = np.array(up, dtype=bool).T
    ticks, pools = flags.shape
    names = tuple(f"pool{number}" for number in range(pools))
    moves = (np.ones((pools, pools)) - np.eye(pools)) * egress
    terms = Terms(names, HOUR, round(work * HOUR), round(deadline * HOUR), round(overhead * HOUR), moves)
    spot = np.tile(1.0 + np.arange(pools), (ticks, 1))
    return JobCase(
        "case", "cluster", "group", terms, Window(names, HOUR, 0, Course(flags, spot, np.full((ticks, pools), ask)))
    )


TWO = ([1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0])
"""The first pool for an hour, then the second for two."""


@pytest.mark.parametrize(("egress", "best", "eager"), [(1.0, 6.0, 6.0), (12.0, 14.0, 17.0)])
def test_two_pools_and_a_checkpoint_that_is_moved_by_hand(egress: float, best: float, eager: float) -> None:
    # Half an hour of work in the first pool (1 $), the move, then half and a whole hour in the second (2 $ each).
    # Dear to move: leave the first out, and end on demand where the checkpoint lies: 2 + 2 + 10.
    here = case(TWO, egress=egress)
    lived = tick_engine.play(here, uniform_progress.Uniform(here.terms))
    assert offline_optimum.cost(here) == pytest.approx(best)
    assert lived.cost == pytest.approx(eager)
    assert (lived.egress, len(lived.choices)) == (egress, 3)
    assert not lived.is_late(here.terms)


def test_on_demand_is_rented_where_it_is_cheapest_and_of_several_where_the_checkpoint_lies() -> None:
    prices = (3.0, 2.0, 2.0)
    assert [tick_engine.fallback(prices, where) for where in (-1, 0, 1, 2)] == [1, 1, 1, 2]


def test_zones_of_one_region_exchange_for_nothing() -> None:
    moves = pool_place.egress(["us-east-1a_v100_1", "us-east-1c_v100_1", "us-east4-a", "us-east4-b"], 50, 0.02)
    assert moves.tolist() == [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]


def test_a_pool_without_capacity_is_refused() -> None:
    class Blind:
        def choose(self, _: tick_engine.Sight, /) -> tick_engine.Choice:
            return tick_engine.Choice(Tenure.INTERRUPTIBLE, 1)

    with pytest.raises(tick_engine.Refused):
        tick_engine.play(case(TWO), Blind())


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
def test_no_rule_is_cheaper_than_the_bound_and_none_is_late(here: JobCase) -> None:
    best = offline_optimum.cost(here)
    for name in RULES:
        lived = tick_engine.play(here, pools_problem.POLICIES[name](here.terms, 50.0))
        assert not lived.is_late(here.terms), name
        assert lived.cost >= best - 1e-9, name


@given(worlds, st.integers(1, 11), st.integers(0, 2**32 - 1))
def test_no_rule_sees_the_future(here: JobCase, known: int, seed: int) -> None:
    lots = np.random.default_rng(seed)
    noise = here.course.up.copy()
    noise[known:] = lots.random(noise[known:].shape) < 0.5
    prices = here.course.spot.copy()
    prices[known:] = lots.uniform(0.5, 9.0, prices[known:].shape)
    other = replace(here, window=replace(here.window, course=Course(noise, prices, here.course.on_demand)))
    for name in RULES:
        lived, again = (
            tick_engine.play(each, pools_problem.POLICIES[name](each.terms, 50.0)) for each in (here, other)
        )
        assert lived.choices[:known] == again.choices[:known], name


def test_a_bench_builds_no_table_of_ours_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, built = multi_pool_dp.tables, []
    build = tables._build

    def counted(key: multi_pool_dp.TableKey) -> multi_pool_dp.Table:
        built.append(key)
        return build(key)

    tables.clear()
    monkeypatch.setattr(tables, "_build", counted)
    monkeypatch.setattr(tables, "most_bytes", 1)
    here = case(([1, 0] * 20, [0, 1] * 20, [1, 1, 0, 0] * 10), work=12.0, deadline=24.0)
    tick_engine.play(here, own_kernel.policy(here.terms))
    assert len(built) == len(set(built)) > 1
