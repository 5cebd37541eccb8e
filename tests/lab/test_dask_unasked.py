"""Who does not ask for a cluster imports nothing of Dask and installs nothing of it."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.cli.main import app

DASK = {"cloudpickle", "dask", "distributed", "tornado"}
IMPORTS = """
import sys
import agent.app, agent.daemon, agent.cli.main
from typer.testing import CliRunner
words = ["lab", "bench", "--problem", "deadline", "--traces", sys.argv[1], "--strategies", "greedy", "--workers", "1",
    "--job-hours", "8", "--deadline-hours", "9", "--window-hours", "12", "--spot-price", "1", "--on-demand-price", "3"]
done = CliRunner().invoke(agent.cli.main.app, words)
assert done.exit_code == 0, done.output
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_daemon_the_verbs_and_a_bench_import_nothing_of_dask(tmp_path: Path) -> None:
    up = [int(tick % 11 < 6) for tick in range(200)]
    row = {"pool": "zone", "gap_seconds": 600, "start": "2026-01-01T00:00:00Z", "available": up}
    (tmp_path / "zone.json").write_text(json.dumps(row))
    environment = {key: value for key, value in os.environ.items() if key != "GPUBID_LAB_ON"}
    command = [sys.executable, "-c", IMPORTS, str(tmp_path)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
    assert "agent" in found
    assert DASK.isdisjoint(found)


def test_a_plain_installation_has_nothing_of_dask() -> None:
    needed = importlib.metadata.requires("gpubid") or []
    assert [each for each in needed if each.startswith(tuple(DASK)) and "extra ==" not in each] == []


def test_without_the_extra_the_option_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused = CliRunner().invoke(app, ["lab", "check", "patient", "--on", "tcp://127.0.0.1:8786"])
    assert (refused.exit_code, "pip install 'gpubid[dask]'" in refused.stderr) == (2, True)


def test_the_help_says_that_rented_hosts_are_none_of_it() -> None:
    for verb in ("bench", "report", "check"):
        said = " ".join(CliRunner().invoke(app, ["lab", verb, "--help"], env={"COLUMNS": "300"}).output.split())
        assert "Own boxes only, never rented hosts" in said
