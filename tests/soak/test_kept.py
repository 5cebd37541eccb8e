"""A soak that was broken off goes on: rehearsals of the committed program are not played again."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.soak import __main__ as soak
from tests.support import committed


def test_a_kept_rehearsal_is_read_and_a_missing_one_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ("calm", 0.05, 1, "patient")
    monkeypatch.setattr(soak, "kept", lambda: tmp_path)
    (first,) = soak.played([scene], 1, tmp_path)
    (file,) = tmp_path.iterdir()
    told = json.loads(file.read_text())
    assert first.wrong == told["wrong"] == []
    assert told["figures"]["seed"] == 1
    told["figures"]["spend"] = 777.0
    file.write_text(json.dumps(told))
    (again,) = soak.played([scene], 1, tmp_path)
    assert again.figures["spend"] == 777.0
    assert "777.00" in soak.row(again)


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
    (tmp_path / "agent" / "file").write_text("two")
    assert committed.digest(tmp_path, "agent", "agent/file") == ""
