"""The figures of a job's run by hand: net value, hours with and without work, starts, and their tenth percentile."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.domain.market.tenure import Tenure
from agent.lab.deadline.deadline_jobs import Setting
from agent.lab.jobs import job_figures
from tests.lab.one_pool_cases import case, lived, scripted

HOUR = 3600
SPOT, DEMAND = Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND


def test_a_run_with_a_loss_a_wait_and_a_switch() -> None:
    job = case([True, True, False, True, False, False], Setting(3 * HOUR, 6 * HOUR, HOUR // 2))
    run = lived(scripted([SPOT, SPOT, None, SPOT, DEMAND, DEMAND]), job)
    # Three hours of work are worth 9 $ and cost 9 $. It ends at 5.5 h: an hour's wait, and half an hour for each start.
    assert job_figures.of(run, job) == {
        "net $": pytest.approx(0.0),
        "useful h": 3.0,
        "idle h": 2.5,
        "starts": 3.0,
        "interruptible h": 3.0,
        "on demand h": 2.0,
    }


def test_work_after_the_deadline_is_worth_nothing() -> None:
    job = case([True, True], Setting(HOUR, HOUR, 60))
    found = job_figures.of(lived(scripted([DEMAND, DEMAND]), job), job)
    assert found["useful h"] == pytest.approx(59 / 60)
    assert found["idle h"] == pytest.approx(1 / 60)
    assert found["net $"] == pytest.approx(3 * 59 / 60 - 6)


def test_a_run_that_never_starts_is_idle_until_the_deadline() -> None:
    job = case([False] * 4, Setting(HOUR, 3 * HOUR, 60))
    found = job_figures.of(lived(scripted([None] * 4), job), job)
    assert (found["useful h"], found["idle h"], found["starts"], found["net $"]) == (0.0, 3.0, 0.0, 0.0)


@pytest.mark.parametrize("problem", ["deadline", "deadline-pools"])
def test_both_benches_show_them_beside_the_cost(problem: str, tmp_path: Path) -> None:
    for number, zone in enumerate(("zone-1a", "zone-1b")):
        up = [int((tick // (4 + number)) % 3 > 0) for tick in range(144 * 3)]
        row = {"gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "pool": zone, "available": up}
        row |= {"spot_price": 1.0, "on_demand_price": 3.0}
        (tmp_path / f"{zone}.json").write_text(json.dumps(row))
    command = ["lab", "bench", "--problem", problem, "--traces", str(tmp_path), "--workers", "1", "--job-hours", "6"]
    command += ["--deadline-hours", "8", "--window-hours", "8", "--overhead-hours", "0.2", "--strategies", "on_demand"]
    result = CliRunner().invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["strategies"]
    figures = row["figures"]
    assert figures["useful h"] == figures["useful h, 1 in 10 below"] == 6.0
    assert figures["starts"] == 1.0
    # On demand it begins at once, and only its start is without work.
    assert figures["idle h"] == pytest.approx(0.2)
    assert figures["net $"] == pytest.approx(6 * 3.0 - row["mean_cost"])
