"""Stretches of four days: what begins in one of them is drawn and left out together, in every problem."""

import numpy as np
import pytest

from agent.lab.bench import blocks
from agent.lab.deadline import deadline_jobs
from agent.lab.jobs.job_terms import Course, Window


@pytest.mark.parametrize("gap", [30, 195, 600])
def test_the_last_tick_of_a_stretch_is_in_it_and_the_next_is_not(gap: int) -> None:
    turns = -(-3 * blocks.CLUSTER_HOURS * 3600 // gap)
    one = Course(np.ones((1, 1), bool), np.ones((1, 1)), np.full((1, 1), 2.0))
    ticks = [Window(("a",), gap, first, one) for first in (turns - 1, turns)]
    assert [each.block for each in ticks] == [2, 3]
    cases = [deadline_jobs.case(each, deadline_jobs.Setting(1, 2, 0)) for each in ticks]
    assert [each.cluster for each in cases] == ["a/2", "a/3"]
