"""`gpubid lab bench --problem bids`: one command prints a table a climate, and says that its market is rehearsed."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.cli.main import app

COMMAND = ["lab", "bench", "--problem", "bids", "--seeds", "1-2", "--hours", "2", "--workers", "1"]
NAMED = ["--strategies", "patient,floor_relaunch,hindsight"]


def called(*more: str) -> Any:
    return CliRunner().invoke(app, [*COMMAND, *more])


def test_one_table_a_climate_with_waste_the_bound_and_where_the_market_is_from() -> None:
    done = called(*NAMED, "--climates", "calm,bidding_war", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["problem"] == "bids"
    assert [table["climate"] for table in told["tables"]] == ["calm", "bidding_war"]
    for table in told["tables"]:
        assert "semi-synthetic" in table["market"]
        assert (table["seeds"], table["runs"], table["hours"], table["poll_seconds"]) == ("1-2", 2, 2.0, 60.0)
        rows = {row["strategy"]: row for row in table["strategies"]}
        assert rows["hindsight"]["ratio_to_optimum"] == pytest.approx(1.0)
        parts = rows["patient"]["figures"]
        kinds = ("useful", "lost", "loading", "paused", "traffic", "idle")
        assert sum(parts[f"{kind} $"] for kind in kinds) == pytest.approx(parts["$"])
        assert len(rows["patient"]["ci95_vs_baseline"]) == 2
        assert rows["patient"]["digest"]


def test_a_person_reads_that_it_is_semi_synthetic() -> None:
    done = called(*NAMED, "--climates", "calm")
    assert done.exit_code == 0, done.output
    assert "semi-synthetic" in done.stdout


@pytest.mark.parametrize(
    ("given", "said"), [(("--climates", "nice"), "no nice"), (("--climates", "calm", "--seeds", "9-1"), "--seeds")]
)
def test_what_cannot_be_run_ends_with_what_to_write(given: tuple[str, ...], said: str) -> None:
    done = called(*given)
    assert done.exit_code == 2
    assert said in done.output
