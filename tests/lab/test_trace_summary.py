"""The content of a trace, by hand, and as the command shows it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app
from agent.lab.traces import trace_files, trace_summary

ROW = {
    "pool": "zone",
    "gap_seconds": 1800,
    "start": "2026-01-01T00:00:00Z",
    "available": [0, 2, 1, 0, 0, 3, 3, 3, 3, 0],
}


def trace(tmp_path: Path, **changes: object) -> Path:
    file = tmp_path / "zone.json"
    file.write_text(json.dumps(ROW | changes))
    return file


def test_it_counts_what_it_holds(tmp_path: Path) -> None:
    prices = [None, *[1.5] * 8, 2.5]
    found = trace_summary.of(trace_files.read(trace(tmp_path, spot_price=prices)))
    assert (found.ticks, found.up_share, found.most, found.losses) == (10, 0.6, 3, 2)
    # Two spells of capacity, of one and of two hours, end both; of two absences one of an hour ends, one is cut off.
    assert (found.stays, found.gaps) == (1.0, 1.0)
    assert (found.spot, found.on_demand, found.unpriced) == ((1.5, 2.5), None, 10)


def test_a_pool_that_never_changed_has_no_medians(tmp_path: Path) -> None:
    found = trace_summary.of(trace_files.read(trace(tmp_path, available=[1] * 9)))
    assert (found.up_share, found.stays, found.gaps, found.losses) == (1.0, None, None, 0)


def test_the_command_shows_it_and_says_what_lacks_a_price(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["lab", "show", str(trace(tmp_path, on_demand_price=3))])
    assert shown.exit_code == 0
    assert "60.0%" in shown.stdout
    assert "10 ticks lack a price" in shown.stdout
    told = json.loads(CliRunner().invoke(app, ["lab", "show", str(tmp_path), "--json"]).stdout)
    assert told["pools"][0]["on_demand"] == [3.0, 3.0]


@pytest.mark.parametrize("name", ["nowhere", "zone.json"])
def test_what_is_no_trace_ends_with_two(tmp_path: Path, name: str) -> None:
    (tmp_path / "zone.json").write_text("{")
    result = CliRunner().invoke(app, ["lab", "show", str(tmp_path / name)])
    assert (result.exit_code, result.stderr[:8]) == (2, "gpubid: ")
