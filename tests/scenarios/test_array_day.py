"""An array in bad weather, over the whole program: every task is done exactly once, and never too many are live."""

from pathlib import Path

import pytest

from tests.soak import array_day

AT_NIGHT = pytest.mark.nightly


@pytest.mark.parametrize(
    ("weather", "seed", "tasks", "at_once", "minutes", "hosts"),
    [
        ("bidding_war", 1, 6, 3, (5.0, 25.0), 120),
        *(
            pytest.param(weather, seed, 200, 8, array_day.MINUTES, 300, marks=AT_NIGHT)
            for weather in ("bidding_war", "blackout")
            for seed in range(1, 21)
        ),
    ],
)
async def test_every_task_is_done_exactly_once(
    weather: str, seed: int, tasks: int, at_once: int, minutes: tuple[float, float], hosts: int, tmp_path: Path
) -> None:
    made = array_day.array(tasks, at_once, seed, minutes)
    day = await array_day.play(tmp_path, weather, seed, made, hosts, is_checked=tasks < 10)
    assert day.marked == (1,) * tasks
    assert day.rented_again == 0
    assert min(day.finished) >= 1
    # A host that falls silent may work on after its slot has moved.
    assert sum(day.finished) <= tasks * 1.05
    assert day.most_live <= at_once
    assert day.hours >= day.bound_hours
    assert day.dollars >= day.bound_dollars
