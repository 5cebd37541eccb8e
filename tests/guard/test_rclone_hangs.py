"""An rclone that hangs is ended: the guard asks it before the work begins, and with each beat."""

from pathlib import Path

import pytest

from agent.guard import rclone_store
from agent.guard.guard_clock import GuardClock
from agent.guard.object_store import Unreachable
from agent.guard.rclone_store import RcloneStore
from agent.guard.reaper import Reaper


@pytest.mark.nightly
def test_a_note_waits_for_a_hung_rclone_for_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "rclone"
    program.write_text("#!/bin/sh\nexec sleep 20\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(rclone_store, "NOTE_SECONDS", 0.1)
    store = RcloneStore("nas:", GuardClock(), Reaper())
    with pytest.raises(Unreachable, match="did not end within"):
        store.get("end.json", 10)
    with pytest.raises(Unreachable, match="did not end within"):
        store.put("beat.json", b"{}")
