"""Where the work begins: what only this disk has is moved away, and never deleted."""

import hashlib
import json
import threading
from pathlib import Path

import pytest

from agent.guard import guard_settings
from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import pointer
from agent.guard.checkpoints.manifest import Manifest, ManifestFile
from agent.guard.disk_state import DiskState
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_origin import GuardOrigin
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_status import GuardStatus
from tests.support.memory_store import MemoryStore

NEVER = threading.Event()


class Disk:
    """An instance's disk, with a bucket that has one checkpoint."""

    def __init__(self, place: Path) -> None:
        self.home, self.work = place / "home", place / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.store = MemoryStore()
        notes = BucketNotes(self.store, "root")
        carried = ManifestFile("0/state", 7, hashlib.sha256(b"carried").hexdigest())
        made = Manifest(1, "L1", 1, 1.0, 1.0, 1.0, 1.0, 1.0, (carried,))
        notes.store.put(f"root/ckpt/{made.id}/0/state", b"carried")
        notes.write(made.name, made.note())
        pointer.advance(notes, made, [])
        self._notes = notes

    def origin(self) -> GuardOrigin:
        """Return that of a guard that starts on this disk."""
        told = {"version": 1, "paths": [str(self.work)], "lease": "L1"}
        settings = guard_settings.read({"GPUBID_GUARD": json.dumps(told)})
        status = GuardStatus("L1", None, self.home)
        return GuardOrigin(settings, self._notes, GuardClock(1_000.0), GuardOutput(), status, DiskState(self.home, 1))

    def has(self) -> dict[str, str]:
        """Return the texts of all files beside the guard's own."""
        files = [file for file in self.work.parent.rglob("*") if file.is_file() and self.home not in file.parents]
        return {file.relative_to(self.work.parent).as_posix(): file.read_text() for file in files}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_what_was_never_carried_outlives_every_further_crash(disk: Disk) -> None:
    for number in (1, 2):
        DiskState(disk.home, 1).keep(started=True, sequence=1, manifest="ckpt/00000001-L1.json")
        (disk.work / "state").write_text(f"only copy {number}")
        origin = disk.origin()
        origin.find(NEVER)
        assert origin.crashed(NEVER)
        assert (disk.work / "state").read_text() == f"only copy {number}"
        for _ in range(2):
            assert origin.crashed(NEVER)
            assert disk.has()["work/state"] == "carried"
            (disk.work / "stray").write_text("of a start that crashed")
        assert not origin.crashed(NEVER)
        (disk.work / "stray").unlink()
    assert disk.has() == {
        "work/state": "carried",
        "work.gpubid-replaced/state": "only copy 1",
        "work.gpubid-replaced-2/state": "only copy 2",
    }


def test_a_disk_that_was_cleared_is_not_taken_for_the_works_own(disk: Disk) -> None:
    DiskState(disk.home, 1).keep(started=True, sequence=1, manifest="ckpt/00000001-L1.json")
    origin = disk.origin()
    origin.find(NEVER)
    assert [origin.crashed(NEVER), origin.crashed(NEVER)] == [True, True]
    (disk.work / "state").unlink()
    disk.origin().find(NEVER)
    assert disk.has() == {"work/state": "carried"}


def test_a_first_restore_moves_files_away_that_are_there(disk: Disk) -> None:
    (disk.work / "state").write_text("of a guard whose own folder was lost")
    (disk.work / "more").write_text("more")
    disk.origin().find(NEVER)
    assert disk.has() == {
        "work/state": "carried",
        "work.gpubid-replaced/state": "of a guard whose own folder was lost",
        "work.gpubid-replaced/more": "more",
    }


def test_a_restore_that_was_cut_off_goes_on_in_its_place(disk: Disk) -> None:
    (disk.work / "state.gpubid-part").write_text("carr")
    disk.origin().find(NEVER)
    assert disk.has() == {"work/state": "carried"}
