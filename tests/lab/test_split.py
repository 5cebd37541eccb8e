"""The two halves of a problem's cases share no instant, and each problem runs the half that is named."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.bench import split
from agent.lab.bench.split import Split

PROBLEMS = {
    "deadline": ("--job-hours", "6", "--deadline-hours", "8", "--window-hours", "8", "--overhead-hours", "0.2"),
    "deadline-pools": ("--job-hours", "6", "--deadline-hours", "8", "--window-hours", "8", "--overhead-hours", "0.2"),
    "availability": ("--window-hours", "8"),
}
SOME = {"deadline": "greedy", "deadline-pools": "eager", "availability": "round_robin"}


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 20)), max_size=30))
def test_no_instant_is_in_both_halves(rows: list[tuple[float, float]]) -> None:
    cases = [(begin, begin + length) for begin, length in rows]
    fit, judge = (split.half(cases, each, lambda case: case) for each in Split)
    assert not set(fit) & set(judge)
    assert all(mine[1] <= theirs[0] for mine in fit for theirs in judge)
    assert split.half(cases, None, lambda case: case) == tuple(cases)


@pytest.mark.parametrize(
    ("seeds", "fit", "judge"), [((1, 2, 3, 4), (1, 2), (3, 4)), ((1, 2, 3), (1,), (3,)), ((5,), (), ())]
)
def test_seeds_are_halved_in_their_order(seeds: tuple[int, ...], fit: tuple[int, ...], judge: tuple[int, ...]) -> None:
    assert split.half_of_seeds(seeds, Split.FIT) == fit
    assert split.half_of_seeds(seeds, Split.JUDGE) == judge


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    for number, zone in enumerate(("zone-1a", "zone-1b")):
        lots = random.Random(number)
        row = {
            "gap_seconds": 600,
            "start": "2026-01-01T00:00:00Z",
            "pool": zone,
            "on_demand_price": 3.0,
            "spot_price": 1.0,
            "available": [int(lots.random() < 0.6) for _ in range(144 * 6)],
        }
        (tmp_path / f"{zone}.json").write_text(json.dumps(row))
    return tmp_path


def told(traces: Path, problem: str, *more: str) -> dict[str, Any]:
    command = ["lab", "bench", "--problem", problem, "--traces", str(traces), "--workers", "1", "--stride-hours", "12"]
    result = CliRunner().invoke(app, [*command, *PROBLEMS[problem], "--strategies", SOME[problem], "--json", *more])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_runs_one_half_and_says_so(traces: Path, problem: str) -> None:
    whole, fit, judge = (told(traces, problem, *more) for more in ((), ("--split", "fit"), ("--split", "judge")))
    assert "split" not in whole
    assert (fit["split"], judge["split"]) == ("the half to fit", "the half to judge")
    assert 0 < fit["runs"] < whole["runs"]
    assert 0 < judge["runs"] < whole["runs"]
    assert fit["runs"] + judge["runs"] <= whole["runs"]
    assert fit["strategies"][0]["mean_cost"] != judge["strategies"][0]["mean_cost"]


def test_a_half_with_few_blocks_has_means_and_no_interval(traces: Path) -> None:
    found = told(traces, "deadline-pools", "--split", "judge", "--baseline", "on_demand")
    assert found["blocks"] < 5
    (row,) = found["strategies"]
    assert row["mean_cost"] > 0
    assert row["difference_vs_baseline"] != 0
    assert row["ci95_vs_baseline"] == [None, None]


def test_bids_halve_their_seeds() -> None:
    command = ["lab", "bench", "--problem", "bids", "--climates", "calm", "--hours", "0.2", "--strategies", "on_demand"]
    command += ["--seeds", "1-2", "--workers", "1", "--json"]
    found = [json.loads(CliRunner().invoke(app, [*command, "--split", each.value]).stdout) for each in Split]
    assert [(each["runs"], each["seeds"]) for each in found] == [(1, "1-1"), (1, "2-2")]
    one = CliRunner().invoke(app, [*command, "--seeds", "3", "--split", "fit"])
    assert (one.exit_code, "name two or more" in one.stderr) == (2, True)
