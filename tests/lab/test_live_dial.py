"""A live dial in the bench: it sees earlier days and no later one; more target is more availability, and dearer."""

import json
import os
import random
from pathlib import Path

import pytest

from agent.lab.availability.availability_problem import LIVE, AvailabilityProblem
from agent.lab.availability.span import Span
from strategies.hedged_rules.params import HedgedParams

TARGETS = ("hedged_live_0.95", "hedged_live", "hedged_live_0.995", "hedged_live_0.999")
DAYS = 4
TICKS = 144


def write(folder: Path, *, seed: int = 1, changed_day: int | None = None) -> Path:
    """Three zones of two regions over some days of ten-minute ticks; `changed_day` has no capacity at all."""
    folder.mkdir(exist_ok=True)
    for number, zone in enumerate(("us-east-1a", "us-east-1b", "us-west-2a")):
        lots, is_up, available = random.Random(seed * 10 + number), True, []
        for tick in range(DAYS * TICKS + 24):
            is_up ^= lots.random() < 0.08
            available.append(int(is_up and tick // TICKS != changed_day))
        row = {"gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "pool": zone, "spot_price": 1.0}
        (folder / f"{zone}.json").write_text(json.dumps({**row, "available": available}))
    return folder


def days(problem: AvailabilityProblem) -> list[Span]:
    return [each for each in problem.cases() if each.group == "all"]


@pytest.mark.nightly
def test_a_day_depends_on_the_days_before_it_and_on_none_after_it(tmp_path: Path) -> None:
    plain, other = (AvailabilityProblem(write(tmp_path / f"{day}", changed_day=day)) for day in (None, 2))
    before, after = ([problem.score("hedged_live", day) for day in days(problem)] for problem in (plain, other))
    assert len(before) == DAYS
    assert before[:2] == after[:2]
    assert before[3] != after[3], "a day without any capacity must change the dial of the next one"
    fixed = [[problem.score("hedged", day) for day in days(problem)][3] for problem in (plain, other)]
    assert fixed[0] == fixed[1]


@pytest.mark.nightly
def test_the_order_in_which_days_are_scored_changes_nothing(tmp_path: Path) -> None:
    folder = write(tmp_path / "one")
    forward, back = AvailabilityProblem(folder), AvailabilityProblem(folder)
    found = [forward.score("hedged_live", day) for day in days(forward)]
    assert [back.score("hedged_live", day) for day in reversed(days(back))] == found[::-1]


def test_the_first_day_has_the_first_worth_of_the_law(tmp_path: Path) -> None:
    problem = AvailabilityProblem(write(tmp_path / "one"))
    dial = problem._dial(HedgedParams(keep_warm=True, target=0.99), days(problem)[0])
    assert dial.worth == pytest.approx(12.0)


def over_days(folder: Path, names: tuple[str, ...] = TARGETS) -> list[tuple[float, float]]:
    """The mean availability and the mean dollars of a day under each name."""
    problem = AvailabilityProblem(folder)
    found = []
    for name in names:
        scores = [problem.score(name, day) for day in problem.cases()]
        shares = [each.figures["availability"] for each in scores]
        found.append((sum(shares) / len(shares), sum(each.cost for each in scores) / len(scores)))
    return found


@pytest.mark.nightly
def test_more_target_is_more_availability_for_more_dollars(tmp_path: Path) -> None:
    found = over_days(write(tmp_path / "one"))
    assert found == sorted(found)
    assert sorted(found, key=lambda each: each[1]) == found
    assert found[-1][0] > found[0][0]


def test_every_name_has_a_target_and_a_digest(tmp_path: Path) -> None:
    problem = AvailabilityProblem(write(tmp_path / "one"))
    assert set(LIVE) <= set(problem.strategies())
    assert len({problem.digests()[name] for name in LIVE}) == len(LIVE)
    assert {problem.params(name).target for name in LIVE} == {0.95, 0.99, 0.995, 0.999}  # type: ignore[union-attr]


RECORDED = os.environ.get("GPUBID_TRACES")


@pytest.mark.nightly
@pytest.mark.skipif(not RECORDED, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("name", ["aws-2022", "aws-2022-11-28", "aws-2023", "aws-2023-02-27", "gcp-h100-2025"])
def test_more_target_is_more_availability_on_recorded_days(name: str) -> None:
    found = over_days(Path(RECORDED or "") / name)
    assert found == sorted(found)
    assert sorted(found, key=lambda each: each[1]) == found
