"""The last checkpoint of ended work reaches the bucket before the note of the end, which frees the disk."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.guard import guard_settings
from agent.guard.bucket_notes import END, BucketNotes
from agent.guard.checkpoints import checkpoint_aside, checkpoint_files
from agent.guard.checkpoints.checkpoint_carrier import CheckpointCarrier
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.disk_state import DiskState
from agent.guard.end_report import EndReport
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.guard_settings import BucketPlace
from agent.guard.guard_status import GuardStatus
from agent.guard.object_store import Unreachable
from agent.guard.s3.s3_objects import S3Objects
from tests.support import s3_servers, store_proxy
from tests.support.guarded import ROOT, Instance, until
from tests.support.memory_store import MemoryStore
from tests.support.s3_servers import Store
from tests.support.store_proxy import StoreProxy

SPEED = {"SIM_SPEED": "1000"}
AWAY = "the last checkpoint is not carried"
pytestmark = pytest.mark.skipif(not s3_servers.HERE["moto"], reason="moto is not here: `make stores` installs it")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return s3_servers.shared("moto", tmp_path.parent)


@pytest.fixture
def notes(store: Store) -> Iterator[BucketNotes]:
    objects = S3Objects(
        BucketPlace(store.url, "us-east-1", store.bucket, ROOT, s3_servers.KEY_ID, s3_servers.SECRET, ""),
        GuardClock(),
    )
    yield BucketNotes(objects, ROOT)
    objects.close()


@pytest.fixture
def proxy(store: Store) -> Iterator[StoreProxy]:
    with store_proxy.before(store) as it:
        yield it


def work(instance: Instance) -> list[str]:
    return ["sh", "-c", f"echo began; echo the result > {instance.work}/result; exit 0"]


def result(notes: BucketNotes) -> bytes:
    """Return the file that the note of the end leads to."""
    end = until(lambda: notes.read(END), "the end")[0]
    manifest = CheckpointList(notes, "test").read(str(end["manifest"]))
    assert manifest is not None, f"{end} names no checkpoint, and it frees the disk"
    found = notes.store.get(notes.key(f"ckpt/{manifest.id}/0/result"), 100)
    assert found is not None
    return found.body


def test_a_bucket_that_is_away_at_the_end_of_the_work_gets_its_result_before_the_note(
    store: Store, notes: BucketNotes, proxy: StoreProxy, tmp_path: Path
) -> None:
    instance = Instance(tmp_path / "one")
    log = instance.place / "log-1"
    proxy.fault = lambda _, path: 503 if "/ckpt/" in path and AWAY not in log.read_text() else None
    bucket = store.place(ROOT, endpoint=proxy.url)
    with instance.started(*work(instance), store=store, env=SPEED, bucket=bucket) as guard:
        guard.phase("done")
        assert result(notes) == b"the result\n"
        assert AWAY in guard.text()


def test_a_guard_that_was_killed_before_its_last_checkpoint_carries_it_at_the_next_start(
    store: Store, notes: BucketNotes, proxy: StoreProxy, tmp_path: Path
) -> None:
    instance = Instance(tmp_path / "one")
    proxy.fault = lambda _, path: 503 if "/ckpt/" in path else None
    bucket = store.place(ROOT, endpoint=proxy.url)
    with instance.started(*work(instance), store=store, env=SPEED, bucket=bucket) as guard:
        guard.said(AWAY)
    assert notes.read(END) is None
    proxy.fault = lambda _method, _path: None
    with instance.started(*work(instance), store=store, env=SPEED, bucket=bucket) as guard:
        guard.phase("done")
        assert "began" not in guard.text()
        assert result(notes) == b"the result\n"


class StillClock(GuardClock):
    """A clock that does not run until it is moved."""

    seconds = 1_000.0

    def now(self) -> float:
        return self.seconds


class Choosy(MemoryStore):
    """A store that takes notes and no files."""

    def upload(self, key: str, file: Path) -> Any:
        raise Unreachable(f"no room for {file} as {key}")


def test_a_checkpoint_that_a_bucket_never_takes_keeps_the_note_back_for_an_hour(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.pt").write_text("whole")
    told = {"version": 1, "paths": [str(tmp_path / "one.pt")], "lease": "L1"}
    settings, clock = guard_settings.read({"GPUBID_GUARD": json.dumps(told)}), StillClock()
    disk, output, notes = DiskState(None, 1), GuardOutput(), BucketNotes(Choosy(), "root")
    carrier = CheckpointCarrier(settings, notes, clock, output, GuardStatus("L1", None, tmp_path), disk, None)
    note = {"version": 1, "done": True, "manifest": None}
    report = EndReport(note, notes, carrier, disk, output, clock, 3_600.0)
    assert not report.send()
    clock.seconds += 3_599.0
    assert not report.send()
    assert notes.read(END) is None
    clock.seconds += 1.0
    assert report.send()
    assert notes.read(END) is not None
    assert "the last checkpoint is given up" in capfd.readouterr().out


def test_links_that_killed_guards_left_on_a_volume_go_and_files_that_were_moved_away_stay(tmp_path: Path) -> None:
    beside = tmp_path / "volume" / checkpoint_files.OWN_FOLDER
    names = ("7", "aside-L1-5000-1", "aside-L1-5000-2", "aside-L2-5000-1", "aside-L3-5000-1", ".gpubid-replaced")
    for name in names:
        (beside / name).mkdir(parents=True)
        (beside / name / "0").write_text("content")
    os.utime(beside / "aside-L3-5000-1", (1.0, 1.0))
    kept = beside / "aside-L1-5000-2"
    checkpoint_aside.clear(None, [str(tmp_path / "volume")], "L1", [kept], GuardClock().wall())
    assert {each.name for each in beside.iterdir()} == {kept.name, "aside-L2-5000-1", ".gpubid-replaced"}
