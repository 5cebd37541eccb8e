"""The bench: same figures however it is spread, intervals that mean something, and the published yardstick."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.bench import blocks, comparison, interval, result_table
from agent.lab.deadline import deadline_baselines, deadline_jobs, deadline_problem
from agent.lab.jobs import trace_windows

RECORDED = os.environ.get("GPUBID_TRACES")
YARDSTICK = {
    "aws-2022": {"on_demand": 147.65, "greedy": 112.27, "uniform_progress": 101.92, "levi": 99.79, "optimum": 90.79},
    "aws-2023": {"on_demand": 147.35, "greedy": 107.28, "uniform_progress": 97.85, "levi": 95.63, "optimum": 91.31},
}
"""Mean dollars by the published simulator over the same windows, 320 and 180 runs."""
STRIDES = {"aws-2022": 24, "aws-2023": 48}


def folder(tmp_path: Path) -> Path:
    for number in range(2):
        up = [int((tick * (number + 3)) % 11 < 6) for tick in range(400)]
        row = {"pool": f"zone-{number}", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
        (tmp_path / f"{number}.json").write_text(json.dumps(row))
    return tmp_path


def small(tmp_path: Path) -> deadline_problem.DeadlineProblem:
    settings = tuple(deadline_jobs.Setting.of_hours(8, allowed, 0.05) for allowed in (9, 12))
    return deadline_problem.DeadlineProblem(folder(tmp_path), 12, 6, settings, trace_windows.Prices(1.0, 3.0))


@pytest.mark.nightly
def test_processes_change_nothing_but_the_wall_time(tmp_path: Path) -> None:
    built = small(tmp_path)
    alone, spread = (comparison.run(built, built.strategies(), workers=workers) for workers in (1, 2))
    found = [[(row.strategy, row.costs, row.interval, row.late) for row in made.rows] for made in (alone, spread)]
    assert found[0] == found[1]
    assert alone.runs == len(built.cases()) > 0


def test_the_bound_is_the_least_of_every_case(tmp_path: Path) -> None:
    made = {
        row.strategy: row.costs for row in comparison.run(small(tmp_path), small(tmp_path).strategies(), workers=1).rows
    }
    for name, costs in made.items():
        assert all(cost >= best - 1e-9 for cost, best in zip(costs, made["optimum"], strict=True)), name


def test_an_interval_covers_nothing_but_what_the_clusters_say() -> None:
    low, high = interval.clustered([1.0, 1.0, *[3.0] * 4], ["a", "a", "b", "c", "d", "e"], 0)
    assert 1.0 <= low < high == 3.0
    assert interval.clustered([2.0] * 5, ["a", "b", "c", "d", "e"], 0) == (2.0, 2.0)


@pytest.mark.parametrize("count", range(1, interval.FEWEST))
def test_fewer_than_five_blocks_give_no_interval_and_that_is_said(count: int) -> None:
    few = interval.clustered([1.0, *map(float, range(count))], ["0", *map(str, range(count))], 0)
    assert interval.as_text(few) == "not known"
    assert interval.plain(few) == [None, None]
    assert interval.clustered([0.0] * count, [str(place) for place in range(count)], 0) == (0.0, 0.0)


def test_an_interval_is_told_with_its_signs() -> None:
    assert interval.as_text((-1.0, 0.5), ".2f") == "[-1.00, +0.50]"


def test_the_command_prints_what_a_program_can_read(tmp_path: Path) -> None:
    words = ["lab", "bench", "--problem", "deadline", "--traces", str(folder(tmp_path)), "--json", "--workers", "1"]
    more = ["--job-hours", "8", "--deadline-hours", "9", "--window-hours", "12", "--stride-hours", "6"]
    prices = ["--spot-price", "1", "--on-demand-price", "3", "--strategies", "levi,optimum"]
    found = json.loads(CliRunner().invoke(app, [*words, *more, *prices]).stdout)
    assert (found["problem"], found["traces"], found["baseline"]) == ("deadline", tmp_path.name, "levi")
    assert [row["strategy"] for row in found["strategies"]] == ["levi", "optimum"]
    assert {"mean_cost", "ratio_to_optimum", "late", "ci95_vs_baseline", "wall_seconds"} <= found["strategies"][
        0
    ].keys()


@pytest.mark.parametrize(
    "words",
    [
        ["--problem", "nothing"],
        ["--problem", "deadline"],
        ["--problem", "deadline", "--traces", "nowhere"],
        ["--problem", "deadline", "--traces", "HERE"],
        ["--problem", "deadline", "--traces", "HERE", "--deadline-hours", "soon"],
        ["--problem", "deadline", "--traces", "HERE", "--strategies", "best"],
        ["--problem", "deadline", "--traces", "HERE", "--window-hours", "999", "--spot-price", "1"],
    ],
)
def test_bad_input_ends_with_two_and_a_sentence(tmp_path: Path, words: list[str]) -> None:
    here = str(folder(tmp_path))
    result = CliRunner().invoke(app, ["lab", "bench", *[here if word == "HERE" else word for word in words]])
    assert result.exit_code == 2
    assert result.stderr.startswith("gpubid: ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--deadline-hours", "90"], "--window-hours 70"),
        (["--job-hours", "60", "--deadline-hours", "60"], "do not fit into 60 h; allow more"),
        (["--stride-hours", "0.1"], "a tick of zone-0 has 0.167 h"),
        (["--spot-price", "1"], "all of its 400 ticks have no on-demand price; name one with --on-demand-price"),
        (["--window-hours", "99", "--on-demand-price", "3", "--spot-price", "1"], "name shorter windows"),
    ],
)
def test_what_does_not_fit_is_said_with_what_to_name(tmp_path: Path, words: list[str], says: str) -> None:
    command = ["lab", "bench", "--problem", "deadline", "--traces", str(folder(tmp_path)), *words]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, says in result.stderr) == (2, True), result.stderr


def test_hazards_that_cannot_be_fitted_are_said_before_anything_runs(tmp_path: Path) -> None:
    alone = folder(tmp_path) / "0.json"
    command = ["lab", "bench", "--problem", "deadline", "--traces", str(alone), "--cross-fit", "pool"]
    job = ["--job-hours", "8", "--deadline-hours", "9", "--window-hours", "12"]
    result = CliRunner().invoke(app, [*command, *job, "--spot-price", "1", "--on-demand-price", "3"])
    assert (result.exit_code, "nothing to fit hazards to" in result.stderr) == (2, True), result.stderr


def test_several_tables_are_one_csv_with_what_tells_them_apart() -> None:
    row = result_table.Row("levi", 1.5, 1.0, 0, 0.0, (0.0, 0.0), 0.1, "", (1.5,), {"useful h": 2.0})
    made = [
        result_table.Table("bids", 1, "levi", 0, 2000, {"climate": name, "hours": 3}, (row,))
        for name in ("calm", "war")
    ]
    rows = list(csv.DictReader(io.StringIO(result_table.csv_text(made))))
    assert [(each["climate"], each["mean_cost"], each["useful h"]) for each in rows] == [
        ("calm", "1.5", "2.0"),
        ("war", "1.5", "2.0"),
    ]
    assert "hours" not in rows[0]


def test_a_problem_that_needs_the_extra_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    command = ["lab", "bench", "--problem", "availability", "--traces", str(folder(tmp_path))]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, "pip install 'gpubid[lab]'" in result.stderr) == (2, True)


def off_the_yardstick(name: str, strategies: list[str]) -> list[str]:
    """Return the strategies whose mean is more than 0.5 % off, or that are late."""
    settings = tuple(deadline_jobs.Setting.of_hours(48, allowed, lost) for allowed in (52, 70) for lost in (0.05, 0.2))
    built = deadline_problem.DeadlineProblem(
        Path(RECORDED or "") / name, 70, STRIDES[name], settings, trace_windows.Prices(0.9731, 3.06)
    )
    scores = {each: [built.score(each, case) for case in built.cases()] for each in strategies}
    means = {each: sum(score.cost for score in found) / len(found) for each, found in scores.items()}
    late = [each for each, found in scores.items() if any(score.is_late for score in found)]
    return late + [each for each in strategies if means[each] != pytest.approx(YARDSTICK[name][each], rel=0.005)]


@pytest.mark.skipif(RECORDED is None, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.parametrize("name", sorted(YARDSTICK))
def test_published_rules_land_on_the_yardstick(name: str) -> None:
    assert off_the_yardstick(name, ["on_demand", "greedy", "uniform_progress", "levi"]) == []


@pytest.mark.skipif(RECORDED is None, reason="GPUBID_TRACES names no folder of recorded traces")
@pytest.mark.nightly
@pytest.mark.parametrize("name", ["aws-2022", "aws-2023"])
def test_the_bound_lands_on_the_yardstick(name: str) -> None:
    assert off_the_yardstick(name, ["optimum"]) == []


def test_a_strategy_on_other_numbers_runs_the_same_cases(tmp_path: Path) -> None:
    shipped = small(tmp_path)
    eager = shipped.with_params("levi", deadline_baselines.LeviParams(slack_share=2, spare_ticks=36))
    assert [case.key for case in eager.cases()] == [case.key for case in shipped.cases()]
    first, other = (comparison.run(each, ["levi", "greedy"], workers=1) for each in (shipped, eager))
    assert first.rows[1].costs == other.rows[1].costs
    assert first.rows[0].costs != other.rows[0].costs
    assert first.rows[0].digest != other.rows[0].digest
    assert shipped.params("greedy") is None


def test_a_case_lies_where_the_trace_says(tmp_path: Path) -> None:
    first, *_ = small(tmp_path).cases()
    begin, end = first.span
    assert begin.isoformat() == "2026-01-01T00:00:00+00:00"
    assert (end - begin).total_seconds() == (12 * 6 + blocks.SPARE_TICKS) * 600
