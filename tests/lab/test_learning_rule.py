"""`deadline` over windows: in time whatever capacity does, blind to the future, and better than the published rules."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.deadline import hazards
from agent.lab.deadline import (
    deadline_folds,
    deadline_jobs,
    deadline_problem,
    hazard_fitting,
    learning_rule,
    slack_rules,
)
from agent.lab.deadline.cross_fit import CrossFit
from agent.lab.jobs import trace_windows
from agent.lab.jobs.job_terms import Course, JobCase, Window
from strategies.deadline import DeadlineParams
from tests.lab.one_pool_cases import lived, over

RECORDED = os.environ.get("GPUBID_TRACES")


def stretch(is_up: Sequence[bool], gap: int, setting: deadline_jobs.Setting) -> JobCase:
    return deadline_jobs.case(over(is_up, gap, 0.97, 3.06), setting)


@settings(max_examples=60)
@given(
    gap=st.sampled_from((195, 600)),
    overhead=st.sampled_from((180, 720)),
    spare=st.integers(0, 12),
    spells=st.lists(st.integers(1, 12), min_size=1, max_size=40),
    begins_up=st.booleans(),
)
def test_it_is_in_time_whatever_capacity_does(
    gap: int, overhead: int, spare: int, spells: list[int], begins_up: bool
) -> None:
    least = -(-(3 * 3600 + overhead) // gap)
    allowed = (least + spare) * gap
    up = [begins_up is (place % 2 == 0) for place, length in enumerate(spells) for _ in range(length)]
    is_up = (up * (least + spare))[: least + spare + 24]
    job = stretch(is_up, gap, deadline_jobs.Setting(3 * 3600, allowed, overhead))
    assert not lived(learning_rule.rule(hazards.SHIPPED), job).is_late(job.terms)


@settings(max_examples=60)
@given(
    gap=st.sampled_from((195, 600)),
    overhead=st.sampled_from((180, 720)),
    spare=st.integers(1, 12),
    spells=st.lists(st.integers(1, 12), min_size=1, max_size=40),
    share=st.floats(0.0, 1.0),
    pace=st.sampled_from((0.0, 1.0)),
)
def test_by_the_rules_of_slack_it_is_in_time_too(
    gap: int, overhead: int, spare: int, spells: list[int], share: float, pace: float
) -> None:
    count = -(-(3 * 3600 + overhead) // gap) + spare
    up = [place % 2 == 0 for place, length in enumerate(spells) for _ in range(length)]
    job = stretch((up * count)[: count + 24], gap, deadline_jobs.Setting(3 * 3600, count * gap, overhead))
    params = DeadlineParams(learn=False, slack_share=share, pace=pace)
    assert not lived(slack_rules.rule(params), job).is_late(job.terms)


def test_it_is_blind_to_the_future_and_the_same_every_time() -> None:
    rng = np.random.default_rng(0)
    setting = deadline_jobs.Setting.of_hours(8, 12, 0.2)
    past = (rng.random(40) < 0.5).tolist()
    runs = [
        lived(learning_rule.rule(hazards.SHIPPED), stretch([*past, *(rng.random(60) < chance)], 600, setting))
        for chance in (0.1, 0.9)
    ]
    assert runs[0].choices[:40] == runs[1].choices[:40]
    again = lived(learning_rule.rule(hazards.SHIPPED), stretch(past * 3, 600, setting))
    assert again == lived(learning_rule.rule(hazards.SHIPPED), stretch(past * 3, 600, setting))


def test_a_fit_finds_the_hazards_that_made_a_trace() -> None:
    rng = np.random.default_rng(1)
    up = np.zeros(60_000, bool)
    for tick in range(1, len(up)):
        # Losses 0.3 an hour, returns 0.6: ten minutes are a sixth of an hour.
        up[tick] = (rng.random() > 0.05) if up[tick - 1] else (rng.random() < 0.1)
    found = hazard_fitting.fit([hazard_fitting.Sight(up, 1 / 6)], factors=(1.0,))
    assert found.losses[:4] == pytest.approx((0.3,) * 4, rel=0.15)
    assert found.returns[:4] == pytest.approx((0.6,) * 4, rel=0.15)


def test_a_trace_without_a_change_says_that_there_is_nothing_to_fit() -> None:
    with pytest.raises(ValueError, match="nothing to fit"):
        hazard_fitting.fit([hazard_fitting.Sight(np.ones(100, bool), 1.0)])


def test_folds_leave_out_the_zone_or_the_days_of_a_window() -> None:
    nothing = Course(np.ones((0, 1), bool), np.ones((0, 1)), np.ones((0, 1)))
    begun = Window(("us-west-2a_v100_8",), 600, 1000, nothing, datetime(2026, 1, 1, tzinfo=UTC))
    assert deadline_folds.fold(begun, CrossFit.POOL) == deadline_folds.Fold(zone="us-west-2a")
    assert deadline_folds.fold(begun, CrossFit.TIME) == deadline_folds.Fold(block=1)


@pytest.mark.skipif(RECORDED is None, reason="set GPUBID_TRACES to the folder of recorded traces to run this")
@pytest.mark.parametrize(
    ("name", "stride", "left_out"),
    [
        ("aws-2022", 72, CrossFit.POOL),
        ("aws-2023", 96, CrossFit.POOL),
        ("gcp-h100-2025", 72, CrossFit.NONE),  # another cloud, GPU and year than those of the shipped fit
    ],
)
@pytest.mark.nightly
def test_scored_on_what_it_was_not_fitted_on_it_beats_levi(name: str, stride: int, left_out: CrossFit) -> None:
    built = deadline_problem.DeadlineProblem(
        Path(str(RECORDED)) / name,
        70,
        stride,
        (deadline_jobs.Setting.of_hours(48, 52, 0.2),),
        trace_windows.Prices(0.9731, 3.06),
        cross_fit=left_out,
    )
    scores = {name: [built.score(name, case) for case in built.cases()] for name in ("levi", "deadline")}
    levi, ours = (sum(score.cost for score in found) for found in scores.values())
    assert ours < 0.99 * levi
    assert not any(score.is_late for score in scores["deadline"])
