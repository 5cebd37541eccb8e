"""The semantics of a tick by hand, and the bound against every plan there is."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.deadline import multi_pool_policy
from agent.domain.market.tenure import Tenure
from agent.lab.deadline import deadline_baselines
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.jobs import job_lanes, offline_optimum, tick_engine, uniform_progress
from agent.lab.jobs.job_terms import Terms
from agent.lab.pools import own_kernel
from tests.lab.one_pool_cases import case, lived, scripted, tenures

HOUR = 3600
SPOT, DEMAND = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND


def test_a_loss_a_wait_and_a_switch_cost_what_they_cost_by_hand() -> None:
    # Hours:        0     1     2      3     4       up at 0, 1 and 3; a start costs half an hour.
    is_up = [True, True, False, True, False, False]
    plan = [SPOT, SPOT, None, SPOT, DEMAND, DEMAND]
    job = case(is_up, Setting(3 * HOUR, 6 * HOUR, HOUR // 2))
    run = lived(scripted(plan), job)
    # Done: 0.5 + 1 + 0 + 0.5 + 0.5 = 2.5 after five ticks; the last half hour ends at 5.5.
    assert run.finished == 5.5 * HOUR
    assert run.cost == 3 * 1.0 + 2 * 3.0
    assert not run.is_late(job.terms)


def test_an_overhead_longer_than_a_tick_carries_over_and_a_loss_loses_it() -> None:
    setting = Setting(HOUR, 9 * HOUR, HOUR * 3 // 2)
    held = lived(scripted([SPOT] * 9), case([True] * 9, setting))
    lost = lived(scripted([SPOT] * 9), case([True, False, True, True, True, True], setting))
    assert (held.finished, lost.finished) == (2.5 * HOUR, 4.5 * HOUR)


def test_interruptible_without_capacity_is_nothing() -> None:
    run = lived(scripted([SPOT]), case([False], Setting(HOUR, HOUR, 0)))
    assert (run.cost, run.finished, tenures(run)) == (0.0, None, (None,))


def test_work_that_ends_after_the_deadline_is_late() -> None:
    job = case([True, True], Setting(HOUR, HOUR, 60))
    assert lived(scripted([DEMAND, DEMAND]), job).is_late(job.terms)


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
    setting = Setting(round(work * HOUR), 4 * HOUR, HOUR // 2)
    assert offline_optimum.cost(case(is_up, setting)) == pytest.approx(best)


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
    """A tick has three minutes: where the allowed minutes are no whole ticks, the last counts up to the deadline."""
    job = case(is_up, Setting(work * 60, allowed * 60, overhead * 60), 180, prices)
    runs = [lived(scripted(plan), job) for plan in itertools.product((None, SPOT, DEMAND), repeat=5)]
    in_time = [run.cost for run in runs if not run.is_late(job.terms)]
    assert offline_optimum.cost(job) == pytest.approx(min(in_time, default=float("inf")))
    held = offline_optimum.choices(job)
    assert (held is None) is (not in_time)
    if held is not None:
        best = lived(scripted([choice.tenure for choice in held]), job)
        assert best.cost == pytest.approx(min(in_time))
        assert not best.is_late(job.terms)
        lane = job_lanes.bound("optimum", job)
        assert lane is not None
        assert (lane.tenures, lane.dollars) == (tenures(best), best.cost)


@given(
    is_up=st.lists(st.booleans(), min_size=40, max_size=40),
    overhead=st.integers(0, 30),
    name=st.sampled_from([*deadline_baselines.PLAIN, *deadline_baselines.NUMBERED]),
)
def test_published_rules_are_never_late_where_there_is_slack_and_never_below_the_bound(
    is_up: list[bool], overhead: int, name: str
) -> None:
    job = case(is_up, Setting(200 * 60, 350 * 60, overhead * 60), 600)
    policy = deadline_baselines.policy(name, deadline_baselines.NUMBERED.get(name), job.terms)
    run = tick_engine.play(job, policy)
    assert not run.is_late(job.terms)
    assert run.cost >= offline_optimum.cost(job) - 1e-9


@given(
    st.integers(1, 400),
    st.integers(0, 300),
    st.integers(0, 40),
    st.integers(0, 40),
    st.sampled_from([60, 195, 600]),
    st.sampled_from([None, SPOT, DEMAND]),
)
def test_the_last_resort_is_the_live_one(
    todo: int, at: int, overhead: int, warm: int, gap: int, tenure: Tenure | None
) -> None:
    terms = Terms(("pool",), gap, 400 * 60, 250 * gap + 70, overhead * 30, np.zeros((1, 1)))
    runs = tick_engine.NOTHING if tenure is None else tick_engine.Choice(tenure, 0)
    sight = tick_engine.Sight(terms, (True,), (1.0,), (3.0,), at, (400 - todo) * 60, runs, min(warm, overhead) * 30, 0)
    forced = multi_pool_policy.forced_choice(own_kernel.standing(sight, terms))
    found = uniform_progress.last_resort(sight)
    assert (found.tenure if found is not None else None) == (forced[0] if forced is not None else None)
    assert found is None or found.pool == 0
