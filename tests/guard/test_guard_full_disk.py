"""The guard on a disk that is really full: checkpoints go on, and a restore without room starts nothing.

The disks are small tmpfs mounts, which only root may make.
"""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints import checkpoint_aside, checkpoint_files, checkpoint_restore
from agent.guard.checkpoints.checkpoint_upload import CheckpointUpload
from agent.guard.checkpoints.upload_plan import UploadPlan
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_settings import BucketPlace
from agent.guard.object_store import DiskFailed
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers
from tests.support.guarded import Guarded, Instance, until
from tests.support.s3_servers import Store

MEGABYTE = 1_000_000
QUICK: dict[str, Any] = {"interval_seconds": 5, "final_within_seconds": 100}
IN_PLACE = """
import os, signal, sys, time
path, asked = sys.argv[1] + "/state.bin", []
signal.signal(signal.SIGUSR1, lambda *_: asked.append(1))
os.makedirs(sys.argv[1], exist_ok=True)
if not os.path.exists(path):
    open(path, "wb").write(b"0" * 100_000)
print("up", flush=True)
step = 0
while True:
    step += 1
    if asked:
        asked.clear()
        with open(path, "r+b") as out:
            out.write(b"%012d" % step)
        os.utime(path)
    time.sleep(0.01)
"""
"""Work whose checkpoint is one file of a size that stays: it needs no more room than it has."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str, int], Path]]:
    """Return what mounts a disk of so many megabytes."""
    with ExitStack() as mounted:

        def mount(name: str, megabytes: int) -> Path:
            place = tmp_path / name
            place.mkdir()
            words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(place)]
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
            mounted.callback(subprocess.run, ["umount", "--lazy", str(place)], check=True)
            return place

        yield mount


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return s3_servers.shared("moto", tmp_path.parent)


def fill(disk: Path) -> Path:
    """Take all room of a disk; return the file that has it."""
    filler, room = disk / "filler", shutil.disk_usage(disk).free
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as out:
        out.writelines([b"x" * 4096] * (2 * room // 4096 + 16))
    # The guard may have dropped a link or a torn file meanwhile.
    assert shutil.disk_usage(disk).free < 100_000
    return filler


def later(guard: Guarded, than: str = "") -> str:
    """Wait for a manifest after another; return its name."""

    def newest() -> str:
        names = [beat["manifest"] for beat in guard.beats() if beat["manifest"]]
        return names[-1] if names and names[-1] > than else ""

    return str(until(newest, f"a manifest after {than!r}", guard.text))


def test_checkpoints_go_on_while_the_disk_is_full_and_after_a_kill_on_it(
    store: Store, small: Callable[[str, int], Path], tmp_path: Path
) -> None:
    disk, instance = small("disk", 4), Instance(tmp_path / "one")
    instance.home, instance.work = disk / "home", disk / "work"
    command = [sys.executable, "-I", "-S", "-c", IN_PLACE, str(instance.work)]
    with instance.started(*command, store=store, **QUICK) as guard:
        first = later(guard)
        filler = fill(disk)
        name = later(guard, later(guard, first))
        assert "Traceback" not in guard.text()
        guard.process.kill()
        guard.ended()
    with instance.started(*command, store=store, manifest_exists=True, **QUICK) as guard:
        name = later(guard, name)
        filler.unlink()
        later(guard, name)
        assert "Traceback" not in guard.text()
    assert shutil.disk_usage(disk).free > 3 * MEGABYTE, "nothing of ours stays on the disk"


def test_a_checkpoint_that_has_no_room_for_a_copy_leaves_none_of_it(
    small: Callable[[str, int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, file = small("disk", 4), tmp_path / "model.pt"
    file.write_bytes(b"x" * (8 * MEGABYTE))
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no links here")))
    seen = checkpoint_files.look([str(file)], None)
    assert seen is not None
    before = shutil.disk_usage(disk).free
    aside = checkpoint_aside.taken(seen, disk / "home", "1")
    assert [each.kept for each in aside.files] == [file], "it is read where it is"
    assert before - shutil.disk_usage(disk).free < MEGABYTE, "the work needs that room"


def test_a_restore_that_has_no_room_starts_nothing_and_says_why(
    store: Store, small: Callable[[str, int], Path], tmp_path: Path
) -> None:
    first = Instance(tmp_path / "one")
    command = [sys.executable, "-I", "-S", "-c", IN_PLACE, str(first.work)]
    with first.started(*command, store=store, **QUICK) as guard:
        later(guard)
        guard.process.kill()
        guard.ended()
    disk, second = small("disk", 2), Instance(tmp_path / "two")
    second.home, second.work = disk / "home", disk / "work"
    command = [sys.executable, "-I", "-S", "-c", IN_PLACE, str(second.work)]
    with second.started(*command, store=store, lease="L2", manifest_exists=True, **QUICK) as guard:
        assert guard.ended() == 78
        last = guard.text().splitlines()[-1]
        assert last.startswith("gpubid-guard: cannot start: ")
        assert "the disk has" in last
        assert "up\n" not in guard.text()


def test_a_disk_that_fills_in_a_restore_keeps_what_it_had(
    store: Store, small: Callable[[str, int], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = s3_servers.KEY_ID
    place = BucketPlace(store.url, "us-east-1", store.bucket, "", key, s3_servers.SECRET, "")
    notes, source = BucketNotes(S3Objects(place, GuardClock()), "root"), tmp_path / "source"
    source.mkdir()
    for name in ("a", "b"):
        (source / name).write_bytes(name.encode() * 3 * MEGABYTE)
    seen = checkpoint_files.look([str(source)], None)
    assert seen is not None
    plan = UploadPlan(checkpoint_aside.taken(seen, None, "1"), 1, None, 1.0, 1.0, 1.0)
    made, _ = CheckpointUpload(notes, GuardClock(), "L1", 1).carry(plan, [], None, lambda _plan: None)
    disk = small("disk", 5)
    (disk / "a").write_bytes(b"old")
    # The room is looked at before each file: another program takes it meanwhile.
    monkeypatch.setattr(checkpoint_restore, "SPARE_BYTES", -4 * MEGABYTE)
    with pytest.raises(DiskFailed, match="No space left"):
        checkpoint_restore.restore(notes, made, [str(disk)])
    assert (disk / "a").read_bytes() == b"old"
    assert not (disk / "b").exists()
