"""A soak that was broken off goes on: rehearsals of the committed program are not played again."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.soak import __main__ as soak
from tests.support import committed
from tests.support.kept_runs import KeptRuns


def test_a_kept_rehearsal_is_read_and_a_missing_one_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ("calm", 0.05, 1, "patient")
    runs = KeptRuns("program", tmp_path / "cache", tmp_path / "soak_days.jsonl")
    monkeypatch.setattr(soak, "kept", lambda: runs)
    (first,) = soak.played([scene], 1, runs)
    (file,) = (tmp_path / "cache" / "program").iterdir()
    told = json.loads(file.read_text())
    assert first.wrong == told["wrong"] == []
    assert told["figures"]["seed"] == 1
    told["figures"]["spend"] = 777.0
    file.write_text(json.dumps(told))
    (again,) = soak.played([scene], 1, runs)
    assert again.figures["spend"] == 777.0
    assert "777.00" in soak.row(again)


def test_what_is_recorded_counts_on_another_machine_for_the_same_program_alone(tmp_path: Path) -> None:
    recorded = tmp_path / "soak_days.jsonl"
    here = KeptRuns("program", tmp_path / "here", recorded)
    here.keep("calm-1", {"figures": {"spend": 1.0}, "wrong": []})
    here.keep("calm-2", {"figures": {"spend": 2.0}, "wrong": []})
    assert here.record() == 2
    there = KeptRuns("program", tmp_path / "there", recorded)
    assert there.get("calm-2") == {"figures": {"spend": 2.0}, "wrong": []}
    assert KeptRuns("another", tmp_path / "here", recorded).get("calm-2") is None
    there.keep("calm-3", {"figures": {"spend": 3.0}, "wrong": []})
    assert there.record() == 3
    assert KeptRuns("another", tmp_path / "here", recorded).record() == 0
    assert recorded.read_text() == ""


def test_a_change_beside_what_was_played_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "file").write_text("one")
    (tmp_path / "README").write_text("one")
    who = ("-c", "user.name=soak", "-c", "user.email=soak@example.org")
    for words in (("init", "--quiet"), ("add", "."), (*who, "commit", "--quiet", "--message", "first")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    first = committed.digest(tmp_path, "agent", "agent/file")
    assert first != ""
    (tmp_path / "README").write_text("two")
    assert committed.digest(tmp_path, "agent", "agent/file") == first
    assert committed.digest(tmp_path) == ""
    assert committed.digest(tmp_path, without=("README",)) != ""
    (tmp_path / "agent" / "file").write_text("two")
    assert committed.digest(tmp_path, "agent", "agent/file") == ""
