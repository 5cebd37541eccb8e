"""Stores beside S3, by the real rclone over a folder of this machine."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.guard_clock import GuardClock
from agent.guard.object_store import Refused, Unreachable
from agent.guard.rclone_store import RcloneStore
from agent.guard.reaper import Reaper
from tests.support import trainer
from tests.support.guarded import Instance

pytestmark = pytest.mark.skipif(shutil.which("rclone") is None, reason="rclone is not here; `make nightly` installs it")
SETTINGS = {"complete": "state.json", "interval_seconds": 5}


@pytest.fixture
def notes(tmp_path: Path) -> BucketNotes:
    return BucketNotes(RcloneStore(":local:", GuardClock(), Reaper()), str(tmp_path / "store"))


def test_objects_come_back_as_they_were(notes: BucketNotes, tmp_path: Path) -> None:
    store = notes.store
    assert notes.read("none") is None
    assert store.list(notes.key("ckpt/"), 10) == []
    assert notes.write("note", {"version": 1, "n": 1}, is_new=True)
    assert not notes.write("note", {"version": 1, "n": 2}, is_new=True)
    assert (notes.read("note") or ({}, ""))[0]["n"] == 1
    with pytest.raises(Refused, match="more than 3 bytes"):
        notes.read("note", 3)
    file, back = tmp_path / "file", tmp_path / "back"
    file.write_bytes(b"content" * 1000)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    done = store.upload(notes.key("ckpt/1/0"), file)
    assert (done.sha256, done.tag) == (sha256, "")
    assert store.download(notes.key("ckpt/1/0"), back, 7000) == sha256
    with pytest.raises(Refused, match="6999 bytes"):
        store.download(notes.key("ckpt/1/0"), back, 6999)
    assert [(row.key, row.size_bytes) for row in store.list(notes.key("ckpt/"), 10)] == [(notes.key("ckpt/1/0"), 7000)]
    assert -60 < store.list(notes.key("ckpt/"), 10)[0].age_seconds < 120
    store.delete(notes.key("ckpt/1/0"))
    store.delete(notes.key("ckpt/1/0"))
    assert store.list(notes.key("ckpt/"), 10) == []


def test_a_remote_that_is_not_configured_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="rclone"):
        RcloneStore("nowhere:", GuardClock(), Reaper()).put("a", b"")


@pytest.mark.nightly
def test_work_goes_on_elsewhere_by_rclone(notes: BucketNotes, tmp_path: Path) -> None:
    """In CI work goes on elsewhere over S3 (test_guard_checkpoints.py), and objects come back by rclone (above)."""
    one, two = Instance(tmp_path / "one"), Instance(tmp_path / "two")
    fields = {**SETTINGS, "rclone": f":local:{notes.root}"}
    with one.started(*trainer.command(one.work), **fields) as guard:
        guard.said('"manifest":"ckpt/')
        guard.process.kill()
        guard.ended()
    found = CheckpointList(notes, "test").newest()
    assert found is not None
    steps = trainer.carried_step(notes) + 300
    with two.started(*trainer.command(two.work, steps), **fields, lease="L2", manifest_exists=True) as guard:
        guard.phase("done")
        assert "\nfrom 0\n" not in guard.text()
        assert f"final {trainer.final(steps)}\n" in guard.text()
    end = json.loads((Path(notes.root) / "end.json").read_text())
    assert (end["done"], end["lease"]) == (True, "L2")


def test_without_rclone_work_that_has_a_checkpoint_does_not_start(tmp_path: Path) -> None:
    instance = Instance(tmp_path / "one")
    bare = tmp_path / "bin"
    bare.mkdir()
    (bare / "sh").symlink_to("/bin/sh")
    for exists, code, line in (
        (True, 78, "cannot start: rclone is not on PATH"),
        (False, 3, "no checkpoint is carried"),
    ):
        fields = {"rclone": "remote:path", "manifest_exists": exists, "env": {"PATH": str(bare)}}
        with instance.started("sh", "-c", "exit 3", **fields) as guard:
            assert guard.ended() == code
        assert line in guard.text()
