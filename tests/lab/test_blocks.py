"""Stretches of four days: what begins in one of them is drawn and left out together, in every problem."""

import pytest

from agent.lab.bench import blocks
from agent.lab.deadline import window


@pytest.mark.parametrize("gap", [30, 195, 600])
def test_the_last_tick_of_a_stretch_is_in_it_and_the_next_is_not(gap: int) -> None:
    turns = -(-3 * blocks.CLUSTER_HOURS * 3600 // gap)
    ticks = [window.Window("a", first, gap, (True,), (1.0,), (2.0,)) for first in (turns - 1, turns)]
    assert [each.block for each in ticks] == [2, 3]
    assert [each.cluster for each in ticks] == ["a/2", "a/3"]
