"""Uniform Progress and LEVI on recorded traces: the rows of the published simulator, where GPUBID_TRACES points."""

import os
from pathlib import Path

import pytest

from agent.lab.deadline import deadline_problem
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.jobs import trace_windows

RECORDED = os.environ.get("GPUBID_TRACES")


@pytest.mark.skipif(RECORDED is None, reason="set GPUBID_TRACES to the folder of recorded traces to run this")
@pytest.mark.parametrize(
    ("name", "stride", "runs", "rows"),
    [
        ("aws-2022", 24, 320, {"greedy": 112.27, "uniform_progress": 101.92, "levi": 99.34}),
        ("aws-2023", 48, 180, {"greedy": 107.28, "uniform_progress": 97.85, "levi": 95.60}),
    ],
)
def test_our_rules_land_within_half_a_percent_of_the_published_simulator(
    name: str, stride: float, runs: int, rows: dict[str, float]
) -> None:
    settings = tuple(Setting.of_hours(48, allowed, overhead) for allowed in (52, 70) for overhead in (0.05, 0.2))
    folder = Path(str(RECORDED)) / name
    problem = deadline_problem.DeadlineProblem(folder, 70, stride, settings, trace_windows.Prices(0.9731, 3.06))
    cases = problem.cases()
    assert len(cases) == runs
    for rule, published in rows.items():
        scores = [problem.score(rule, case) for case in cases]
        assert not any(score.is_late for score in scores), rule
        assert sum(score.cost for score in scores) / runs == pytest.approx(published, rel=0.005), rule
