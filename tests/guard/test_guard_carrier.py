"""The carrier goes on after an unforeseen error, and believes no forged manifest of its own name."""

import json
import os
import time
from pathlib import Path

import pytest

from agent.guard import guard_settings
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import checkpoint_aside, checkpoint_files
from agent.guard.checkpoints.checkpoint_carrier import CheckpointCarrier
from agent.guard.checkpoints.checkpoint_upload import CheckpointUpload
from agent.guard.checkpoints.upload_plan import UploadPlan
from agent.guard.disk_state import DiskState
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import Refused
from tests.support.guarded import until
from tests.support.memory_store import MemoryStore

FORGED = {"version": 1, "sequence": 10**400, "files": [{"path": "0", "size_bytes": 5, "sha256": "0" * 64}]}


@pytest.mark.parametrize("failure", [RuntimeError("odd"), OverflowError("large")])
def test_the_carrier_survives_what_nobody_foresaw(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], failure: Exception
) -> None:
    told = {"version": 1, "paths": [str(tmp_path / "one.pt")], "lease": "L1", "ask": "none", "interval_seconds": 5}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), GuardClock(100.0)
    status, disk = GuardStatus("L1", None, tmp_path), DiskState(tmp_path / "home", 1)
    (tmp_path / "home").mkdir()
    store = MemoryStore()
    notes = BucketNotes(store, "root")

    def fail(_key: str, _body: bytes) -> None:
        store.before_put = None
        raise failure

    store.before_put = fail
    carrier = CheckpointCarrier(settings, notes, clock, GuardOutput(), status, disk, tmp_path / "home")
    (tmp_path / "one.pt").write_text("whole")
    carrier.start(lambda: False, is_restored=False)
    until(lambda: notes.read("latest.json") is not None, "a pointer")
    assert f"no checkpoint is carried: {type(failure).__name__}: {failure}" in capfd.readouterr().out
    carrier.finish(is_clean=True)


def test_paths_that_grew_beyond_a_manifest_do_not_keep_the_work_from_starting_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"version": 1, "paths": [str(tmp_path / "work")], "lease": "L1"}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), GuardClock()
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    for name in ("one.pt", "two.pt"):
        (tmp_path / "work" / name).write_text(name)
    disk = DiskState(tmp_path / "home", 1)
    disk.keep(mark="of the checkpoint that was carried before")
    status, notes = GuardStatus("L1", None, tmp_path), BucketNotes(MemoryStore(), "root")
    carrier = CheckpointCarrier(settings, notes, clock, GuardOutput(), status, disk, None)
    monkeypatch.setattr(checkpoint_files, "MOST_FILES", 1)
    carrier.start(lambda: False, is_restored=False)
    carrier.finish(is_clean=True)
    assert "no checkpoint is carried: more than 1 files" in capfd.readouterr().out


def test_the_manifest_that_is_there_may_be_forged(tmp_path: Path) -> None:
    (tmp_path / "one.pt").write_text("whole")
    seen = checkpoint_files.look([str(tmp_path / "one.pt")], None)
    assert seen is not None
    plan = UploadPlan(checkpoint_aside.taken(seen, None, "1"), 3, None, 1.0, 1.0, 1.0)
    notes = BucketNotes(MemoryStore(), "root")
    notes.write("ckpt/00000003-L1.json", FORGED)
    with pytest.raises(Refused, match="sequence is out of bounds"):
        CheckpointUpload(notes, GuardClock(), "L1", 1).carry(plan, [], None, lambda _plan: None)


def test_an_order_for_another_container_of_the_slot_is_none(tmp_path: Path) -> None:
    told = {"version": 1, "paths": [str(tmp_path)], "lease": "L1", "ask": "none", "interval_seconds": 0}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), GuardClock(1.0)
    status, disk = GuardStatus("L1", None, tmp_path), DiskState(tmp_path / "home", 1)
    notes = BucketNotes(MemoryStore(), "root")
    carrier = CheckpointCarrier(settings, notes, clock, GuardOutput(), status, disk, None)
    carrier._due = clock.now()

    def wants(order: str | None, lease: str | None, *, is_quiet: bool) -> bool:
        named = {} if lease is None else {"lease": lease}
        carrier.take_order({"version": 1, "checkpoint": order, "quiet": is_quiet, **named})
        return carrier._is_wanted(clock.now())

    assert wants("order-1", "L2", is_quiet=True), "the interval of this one goes on"
    assert not wants(None, "L1", is_quiet=True)
    assert not wants(None, None, is_quiet=True)
    assert wants("order-1", "L1", is_quiet=True)


def test_a_disk_whose_times_are_of_whole_seconds_keeps_nobody_from_being_asked_again(tmp_path: Path) -> None:
    told = {"version": 1, "paths": [str(tmp_path / "one.pt")], "lease": "L1", "interval_seconds": 5, "keep": 100}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), GuardClock(100.0)
    status, disk = GuardStatus("L1", None, tmp_path), DiskState(tmp_path / "home", 1)
    (tmp_path / "home").mkdir()
    store = MemoryStore()
    asked: list[float] = []

    def ask() -> bool:
        """Answer at once, as a program with a small state does; the disk rounds the time of the file down."""
        asked.append(time.time())
        (tmp_path / "one.pt").write_text("x" * len(asked))
        os.utime(tmp_path / "one.pt", (int(asked[-1]) - 1, int(asked[-1]) - 1))
        return True

    carrier = CheckpointCarrier(settings, BucketNotes(store, "root"), clock, GuardOutput(), status, disk, None)
    carrier.start(ask, is_restored=False)
    until(lambda: sum(key.endswith("-L1.json") for key in store.objects) >= 3, "three checkpoints", lambda: str(asked))
    carrier.finish(is_clean=True)
    assert asked[2] - asked[0] < 5.0, "each was taken for the one that was asked for: patience is six seconds here"


def test_a_program_that_lets_a_signal_pass_is_asked_again(tmp_path: Path) -> None:
    told = {"version": 1, "paths": [str(tmp_path / "one.pt")], "lease": "L1", "interval_seconds": 5}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), GuardClock(1_000.0)
    status, disk = GuardStatus("L1", None, tmp_path), DiskState(tmp_path / "home", 1)
    asked: list[int] = []

    def ask() -> bool:
        asked.append(1)
        return True

    notes = BucketNotes(MemoryStore(), "root")
    carrier = CheckpointCarrier(settings, notes, clock, GuardOutput(), status, disk, None)
    (tmp_path / "one.pt").write_text("before the first signal")
    carrier.start(ask, is_restored=False)
    until(lambda: len(asked) >= 3, "three signals")
    assert notes.read("latest.json") is not None
    carrier.finish(is_clean=True)


class StillClock(GuardClock):
    """A clock that does not run until it is moved."""

    seconds = 1_000.0

    def now(self) -> float:
        return self.seconds


def test_an_order_keeps_the_interval_back_for_half_an_hour_and_one_written_anew_for_as_long_again(
    tmp_path: Path,
) -> None:
    told = {"version": 1, "paths": [str(tmp_path)], "lease": "L1", "ask": "none", "interval_seconds": 0}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), StillClock()
    status, disk = GuardStatus("L1", None, tmp_path), DiskState(tmp_path / "home", 1)
    (tmp_path / "home").mkdir()
    carrier = CheckpointCarrier(settings, BucketNotes(MemoryStore(), "root"), clock, GuardOutput(), status, disk, None)
    disk.keep(answered="order-1")

    def wants(written: int, passed: float) -> bool:
        clock.seconds += passed
        carrier.take_order(
            {"version": 1, "written_sequence": written, "checkpoint": "order-1", "quiet": True, "lease": "L1"}
        )
        return carrier._is_wanted(clock.now())

    assert not wants(1, 0.0)
    assert not wants(1, 1_799.0)
    assert wants(1, 1.0), "the daemon that wrote it may be gone"
    assert wants(1, 86_400.0), "each look finds the same order"
    assert not wants(2, 0.0)
    assert wants(2, 1_800.0)
