"""An array in bad weather, over the whole program: every task is done exactly once, and never too many are live."""

import json
from pathlib import Path

import pytest

from tests.soak import array_day, array_table

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


def test_a_table_counts_whole_seeds_and_has_no_interval_under_five(tmp_path: Path) -> None:
    file = tmp_path / "days.jsonl"
    rows = [
        {
            "climate": case.climate,
            "seed": case.seed,
            "tasks": 9,
            "at_once": case.at_once,
            "is_wrong": False,
            "twice": 1,
            "by_hand": 0,
        }
        | dict.fromkeys(array_table.COLUMNS, float(case.seed))
        for case in array_table.cases(range(1, 6), 9)
    ]
    lines = [json.dumps(row) + "\n" for row in rows]
    file.write_text("".join(lines[:-1]) + lines[-1].rstrip())
    four = array_table.table(array_table.read(file), 9)
    assert four[0].endswith(", 4 seeds")
    assert four[3] == "| bidding_war | 1 | $2.50 | 2.50 | $2.50 | 2.50 | 0 | 4 | 0 |"
    file.write_text("".join(lines))
    five = array_table.table(array_table.read(file), 9)
    assert five[0].endswith(", 5 seeds")
    assert "| $3.00 (1.80 to 4.20) |" in five[3]
    assert len(five) == 3 + 6
