"""One pool is several of which there is one: what was written for one pool alone comes to the same, run by run."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.deadline import multi_pool_policy
from agent.domain.market.tenure import Tenure
from agent.lab.deadline import deadline_baselines, deadline_ticks, single_pool_optimum, window
from agent.lab.jobs import offline_optimum, tick_engine, trace_windows, uniform_progress
from agent.lab.jobs.job_terms import Course, JobCase, Terms, Window
from agent.lab.pools import own_kernel
from agent.lab.traces import trace_files

SPOT, DEMAND = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND
TRACES = os.environ.get("GPUBID_TRACES")
FOLDERS = ("aws-2022", "aws-2023", "aws-2023-02-27", "gcp-h100-2025")
ALONE = np.zeros((1, 1))
PRICES = window.Prices(None, 3.06)


class Scripted:
    """A policy that goes by a rule of one pool."""

    def __init__(self, rule: Callable[[tick_engine.Sight], Tenure | None]) -> None:
        """Ask `rule` in each tick."""
        self._rule = rule

    def choose(self, sight: tick_engine.Sight) -> tick_engine.Choice:
        """Return what the rule holds; interruptible without capacity is nothing."""
        tenure = self._rule(sight)
        is_nothing = tenure is None or (tenure is SPOT and not sight.up[0])
        return tick_engine.NOTHING if is_nothing else tick_engine.Choice(tenure, 0)


def both(over: window.Window, setting: deadline_ticks.Setting) -> JobCase:
    """Return the same job over the same window as one over pools."""
    gap = over.gap_seconds
    terms = Terms((over.pool,), gap, setting.work, setting.allowed, setting.overhead, ALONE, counts_part=True)
    course = Course(*(np.array(each)[:, None] for each in (over.is_up, over.spot_prices, over.on_demand_prices)))
    return JobCase("case", "cluster", "group", terms, Window((over.pool,), gap, over.first, course, over.start))


def assert_alike(one: deadline_ticks.Lived, other: tick_engine.Run, case: JobCase) -> None:
    """Demand the same tenures, dollars to the last bit, end and lateness."""
    setting = deadline_ticks.Setting(case.terms.work, case.terms.deadline, case.terms.overhead)
    assert other.finished == one.finished
    assert [choice.tenure for choice in other.choices] == list(one.tenures)
    assert other.cost == one.dollars
    assert other.is_late(case.terms) is one.is_late(setting)


def assert_one_bound(over: window.Window, setting: deadline_ticks.Setting) -> None:
    """Demand one bound, and choices that reach it in time."""
    case = both(over, setting)
    found = single_pool_optimum.cost(over, setting)
    assert offline_optimum.cost(case) == pytest.approx(found, rel=1e-12)
    held = offline_optimum.choices(case)
    assert (held is None) is (found == float("inf"))
    if held is not None:
        lived = tick_engine.play(case, Scripted(lambda at: held[at.tick].tenure if at.tick < len(held) else None))
        assert lived.cost == pytest.approx(found, rel=1e-12)
        assert not lived.is_late(case.terms)


ticks = st.lists(st.tuples(st.booleans(), st.floats(0.5, 4), st.floats(2, 4)), min_size=8, max_size=40)
jobs = st.builds(
    deadline_ticks.Setting,
    st.integers(1, 60).map(lambda minutes: minutes * 60),
    st.integers(10, 80).map(lambda minutes: minutes * 60),
    st.integers(0, 10).map(lambda minutes: minutes * 60),
)
gaps = st.sampled_from([180, 195, 600])


def drawn(rows: Sequence[tuple[bool, float, float]], gap: int) -> window.Window:
    """Return a window of ticks."""
    is_up, spot, on_demand = zip(*rows, strict=True)
    return window.Window("pool", 0, gap, is_up, spot, on_demand)


@given(ticks, jobs, gaps, st.lists(st.sampled_from([None, SPOT, DEMAND]), min_size=40, max_size=40))
def test_equal_choices_come_to_the_same(
    rows: list[tuple[bool, float, float]], setting: deadline_ticks.Setting, gap: int, plan: list[Tenure | None]
) -> None:
    over = drawn(rows, gap)
    case = both(over, setting)
    one = deadline_ticks.run(lambda at: plan[at.tick], over, setting)
    assert_alike(one, tick_engine.play(case, Scripted(lambda at: plan[at.tick])), case)


@given(ticks, jobs, gaps)
def test_uniform_progress_over_one_pool_is_that_over_several(
    rows: list[tuple[bool, float, float]], setting: deadline_ticks.Setting, gap: int
) -> None:
    over = drawn(rows, gap)
    case = both(over, setting)
    one = deadline_ticks.run(deadline_baselines.rule("uniform_progress", None), over, setting)
    assert_alike(one, tick_engine.play(case, uniform_progress.Uniform(case.terms)), case)
    one = deadline_ticks.run(deadline_baselines.rule("on_demand", None), over, setting)
    assert_alike(one, tick_engine.play(case, uniform_progress.OnDemand(case.terms)), case)


@given(ticks, jobs, st.sampled_from([60, 180, 195, 300, 600]))
def test_the_bound_over_one_pool_is_that_over_several(
    rows: list[tuple[bool, float, float]], setting: deadline_ticks.Setting, gap: int
) -> None:
    """Two programmes written apart: one counts the work left, the other the slack."""
    assert_one_bound(drawn(rows, gap), setting)


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
    terms = Terms(("pool",), gap, 400 * 60, 250 * gap + 70, overhead * 30, ALONE)
    runs = tick_engine.NOTHING if tenure is None else tick_engine.Choice(tenure, 0)
    sight = tick_engine.Sight(terms, (True,), (1.0,), (3.0,), at, (400 - todo) * 60, runs, min(warm, overhead) * 30, 0)
    forced = multi_pool_policy.must(own_kernel.standing(sight, terms))
    found = uniform_progress.last_resort(sight)
    assert (found.tenure if found is not None else None) == (forced[0] if forced is not None else None)
    assert found is None or found.pool == 0


def recorded(folder: str) -> Iterator[window.Window]:
    """Yield some windows of each pool of a record, cut by both cutters alike."""
    for trace in trace_files.folder(Path(TRACES or "") / folder):
        for hours, stride in ((52, 60.0), (70, 47.3)):
            alone = window.cut(trace, hours, stride, PRICES)
            how = trace_windows.Cut(hours, stride * 3600 / trace.gap_seconds, trace_windows.Prices(None, 3.06))
            among = list(trace_windows.cut([trace], how))
            assert [(each.first, each.start, each.span, each.block) for each in among] == [
                (each.first, each.start, each.span, each.block) for each in alone
            ]
            for one, other in zip(alone, among, strict=True):
                rows = zip(one.is_up, one.spot_prices, one.on_demand_prices, strict=True)
                assert [tuple(column[0] for column in row) for row in other.course.rows] == list(rows)
            yield from alone[:2]


@pytest.mark.skipif(not TRACES, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_windows_come_to_the_same(folder: str) -> None:
    for over in recorded(folder):
        for allowed, overhead in ((52, 0.2), (51.97, 0.05)):
            setting = deadline_ticks.Setting.of_hours(48, allowed, overhead)
            case = both(over, setting)
            one = deadline_ticks.run(deadline_baselines.rule("uniform_progress", None), over, setting)
            assert_alike(one, tick_engine.play(case, uniform_progress.Uniform(case.terms)), case)
            assert_one_bound(over, setting)
