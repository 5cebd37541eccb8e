"""`gpubid lab bench --problem deadline-pools` as it is typed."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.pools import pools_jobs
from agent.lab.pools.pools_problem import PoolsProblem

COMMAND = ["lab", "bench", "--problem", "deadline-pools", "--job-hours", "4", "--deadline-hours", "6", "--workers", "1"]
COMMAND += ["--overhead-hours", "0.25", "--window-hours", "6", "--stride-hours", "3"]


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    for number, zone in enumerate(("us-east-1a", "us-east-1c", "us-west-2a")):
        row = {
            "gap_seconds": 900,
            "start": "2026-01-01T00:00:00Z",
            "pool": f"{zone}_v100_1",
            "on_demand_price": 3.0,
            "spot_price": 1.0 + number,
            "available": [(tick // (4 + 3 * number)) % 2 for tick in range(200)],
        }
        (tmp_path / f"{zone}.json").write_text(json.dumps(row))
    return tmp_path


def test_one_command_prints_the_table_of_each_set(traces: Path) -> None:
    command = [*COMMAND, "--traces", str(traces), "--pools", "us-east-1a,us-east-1c;us-east-1a,us-west-2a", "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    rows = {row["strategy"]: row for row in told["strategies"]}
    assert told["sets"] == ["us-east-1a_v100_1+us-east-1c_v100_1", "us-east-1a_v100_1+us-west-2a_v100_1"]
    assert {"on_demand", "stay", "eager", "rate", "optimum"} <= set(rows)
    assert rows["optimum"]["ratio_to_optimum"] == pytest.approx(1.0)
    assert all(row["ratio_to_optimum"] >= 1.0 - 1e-9 and row["late"] == 0 for row in rows.values())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--pools", "us-east-1b"], "no pool of these"),
        (["--pools", "us-east-1a;"], "--pools"),
        (["--deadline-hours", "4"], "allow more"),
        (["--deadline-hours", "9"], "--window-hours"),
    ],
)
def test_what_cannot_be_is_said_and_ends_with_2(traces: Path, more: list[str], says: str) -> None:
    result = CliRunner().invoke(app, [*COMMAND, "--traces", str(traces), *more])
    assert result.exit_code == 2, result.output
    assert says in result.output + result.stderr


@pytest.mark.nightly
def test_the_numbers_of_hedged_are_searched_on_windows_that_lie_before_those_held_out(
    traces: Path, tmp_path: Path
) -> None:
    command = ["lab", "tune", "hedged", *COMMAND[2:-2], "--stride-hours", "3", "--traces", str(traces)]
    command += ["--storage", f"sqlite:///{tmp_path}/study.sqlite3", "--keys", "wait_gain,weather_hours,near_price"]
    result = CliRunner().invoke(app, [*command, "--trials", "3", "--folds", "1", "--json"])
    assert result.exit_code == 0, result.output + result.stderr
    told = json.loads(result.stdout)
    assert told["strategy"] == "hedged"
    assert set(told["tuned"]) <= {"wait_gain", "weather_hours", "near_price"}
    assert told["held_out"]["runs"] > 0
    assert told["folds"][0]["held_out_since"].startswith("2026-01-0")


def test_other_numbers_make_other_choices(traces: Path) -> None:
    problem = PoolsProblem(traces, ((),), (pools_jobs.Job(4, 6, 0.25),), pools_jobs.Windows(6, 3))
    shipped = problem.params("hedged")
    assert shipped is not None
    assert problem.params("eager") is None
    never_waits = problem.with_params("hedged", shipped.model_copy(update={"wait_gain": 1.0}))
    costs = [[each.score("hedged", case).cost for case in each.cases()] for each in (problem, never_waits)]
    assert costs[0] != costs[1]
    assert problem.digests() != never_waits.digests()
