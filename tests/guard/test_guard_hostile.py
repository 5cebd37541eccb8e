"""A bucket or a disk may have any content: it leads nowhere, starts nothing, and is read within bounds."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.guard import guard_settings
from agent.guard.bucket_notes import BucketNotes, parsed
from agent.guard.checkpoints import (
    checkpoint_aside,
    checkpoint_files,
    checkpoint_list,
    checkpoint_restore,
    manifest,
    pointer,
)
from agent.guard.checkpoints.checkpoint_files import PARTIAL, TooManyFiles
from agent.guard.checkpoints.checkpoint_list import CheckpointList
from agent.guard.checkpoints.checkpoint_restore import WrongContent
from agent.guard.checkpoints.checkpoint_watch import CheckpointWatch
from agent.guard.checkpoints.manifest import Manifest, ManifestFile, WrongManifest
from agent.guard.object_store import (
    LARGEST_MANIFEST_BYTES,
    LARGEST_NOTE_BYTES,
    DiskFailed,
    Fetched,
)
from agent.guard.s3 import s3_answers
from tests.support.memory_store import MemoryStore

NAME = "ckpt/00000003-L1.json"
DIGEST = "0" * 64


def note(**changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "sequence": 3,
        "lease": "L1",
        "run": 1,
        "progress": 4.5,
        "taken_wall_seconds": 1.0,
        "taken_boot_seconds": 1.0,
        "took_seconds": 1.0,
        "uploaded_seconds": 1.0,
        "files": [{"path": "0/a", "size_bytes": 1, "sha256": DIGEST}],
        "unknown": "is ignored",
        **changes,
    }


def file(**changes: Any) -> dict[str, Any]:
    return {"files": [{"path": "0/a", "size_bytes": 1, "sha256": DIGEST, **changes}]}


def test_a_manifest_comes_back_as_it_was_written() -> None:
    read = manifest.read(note(), NAME)
    assert manifest.read(json.loads(json.dumps(read.note())), read.name) == read


WRONG: list[dict[str, Any]] = [
    {"files": []},
    {"files": "0/a"},
    {"files": [1]},
    {"files": [file()["files"][0]] * 2},
    {"files": [file(path=path)["files"][0] for path in ("0/a/b/c", "0/a")]},
    {"files": [{"path": f"0/{number}", "size_bytes": 1, "sha256": DIGEST} for number in range(20_001)]},
    {"sequence": -1},
    {"sequence": 1e308},
    {"sequence": True},
    {"sequence": 4},
    {"lease": "L2"},
    {"lease": 1},
    {"progress": 1e308},
    {"progress": float("nan")},
    {"progress": "4"},
    {"progress": 10**400},
    {"sequence": 10**400},
    {"took_seconds": -(10**400)},
    {"uploaded_seconds": float("inf")},
    {"took_seconds": float("inf")},
    *(
        file(path=path)
        for path in (
            "",
            "0/",
            "0//a",
            "/etc/passwd",
            "0/../a",
            "0/a/..",
            "..",
            "0/.",
            "a/b",
            "0\\..\\a",
            "0/a\0",
            "0/a\nb",
            "9999/a",
            "0/a.gpubid-part",
            "0/.gpubid-guard/aside-L1-1-1/0",
            "0/" + "a" * 256,
            "0/" + "a/" * 600 + "a",
            5,
            None,
        )
    ),
    file(size_bytes=-1),
    file(size_bytes=1e308),
    file(size_bytes=2**60),
    file(size_bytes=10**400),
    file(size_bytes=None),
    file(sha256="0" * 63 + "g"),
    file(sha256=None),
    file(etag="0" * 31 + "g"),
    file(etag="0" * 32 + "-"),
    file(etag=None),
]


@pytest.mark.parametrize("changes", WRONG, ids=range(len(WRONG)))
def test_a_wrong_manifest_is_not_believed(changes: dict[str, Any]) -> None:
    with pytest.raises(WrongManifest):
        manifest.read(note(**changes), NAME)


@pytest.mark.parametrize("body", [b"", b"[]", b"[" * 60_000, b"\xff", b'{"version": 2}', b"NaN", b"1e999"])
def test_a_note_that_is_none_of_ours_is_empty(body: bytes) -> None:
    assert parsed(body) == {}


def test_a_file_stays_below_its_path(tmp_path: Path) -> None:
    (tmp_path / "ckpt").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "ckpt" / "link").symlink_to(outside)
    (tmp_path / "ckpt" / "file").symlink_to(outside / "secret")
    paths = [str(tmp_path / "ckpt"), str(tmp_path / "one.pt")]
    assert checkpoint_restore.target("0/a/b", paths) == tmp_path / "ckpt/a/b"
    assert checkpoint_restore.target("1", paths) == tmp_path / "one.pt"
    for name in ("0/link/a", "0/file", "2/a", "0/link/../../a"):
        with pytest.raises(WrongContent):
            checkpoint_restore.target(name, paths)


def test_a_link_that_leads_out_is_not_carried_and_one_that_stays_is(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "step-2").write_text("two")
    (root / "last").symlink_to("step-2")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "broken").symlink_to(root / "nowhere")
    (root / "circle").symlink_to(root / "circle")
    (root / "above").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    (root / f"half{PARTIAL}").write_text("half")
    (root / checkpoint_files.OWN_FOLDER).mkdir()
    (root / checkpoint_files.OWN_FOLDER / "own").write_text("own")
    seen = checkpoint_files.look([str(root)], None)
    assert seen is not None
    assert [each.name for each in seen.files] == ["0/last", "0/step-2"]


def test_files_beyond_a_manifest_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_files, "MOST_FILES", 3)
    for number in range(4):
        (tmp_path / str(number)).touch()
    with pytest.raises(TooManyFiles):
        checkpoint_files.look([str(tmp_path)], None)


def test_the_newest_folder_with_its_mark_is_the_checkpoint(tmp_path: Path) -> None:
    for step, has_mark in ((100, True), (200, True), (300, False)):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "model").write_text(str(step))
        os.utime(folder / "model", (step, step))
        if has_mark:
            (folder / "trainer_state.json").write_text("{}")
            os.utime(folder / "trainer_state.json", (step, step))
    (tmp_path / "log").write_text("beside")
    seen = checkpoint_files.look([str(tmp_path)], "*/trainer_state.json")
    assert seen is not None
    assert [each.name for each in seen.files] == ["0/checkpoint-200/model", "0/checkpoint-200/trainer_state.json"]
    assert checkpoint_files.look([str(tmp_path)], "*/nothing") is None


def test_what_was_taken_aside_outlives_its_replacement_and_deletion(tmp_path: Path) -> None:
    home, root = tmp_path / "home", tmp_path / "ckpt"
    home.mkdir()
    root.mkdir()
    (root / "a").write_text("first")
    (root / "b").write_text("first")
    seen = checkpoint_files.look([str(root)], None)
    assert seen is not None
    aside = checkpoint_aside.taken(seen, home, "1")
    (root / "new").write_text("second")
    (root / "new").replace(root / "a")
    (root / "b").unlink()
    assert [each.kept.read_text() for each in aside.files] == ["first", "first"]
    assert aside.is_unchanged
    with aside.files[0].kept.open("a") as out:
        out.write("more")
    assert not aside.is_unchanged
    aside.drop()
    assert list(home.iterdir()) == []


def test_a_checkpoint_is_whole_once_nothing_changed_for_ten_seconds(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    root.mkdir()
    watch = CheckpointWatch([str(root)], None, tmp_path)
    assert watch.whole(0.0) is None
    (root / "a").write_text("1")
    (root / "b").write_text("1")
    assert watch.whole(1.0) is None
    (root / "b").write_text("12")
    assert watch.whole(10.9) is None
    assert watch.whole(20.8) is None
    aside = watch.whole(21.0)
    assert aside is not None
    watch.carried(aside.seen)
    assert watch.whole(50.0) is None


def test_one_file_that_is_replaced_again_and_again_is_taken_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    watch = CheckpointWatch([str(path)], None, tmp_path / "home")
    (tmp_path / "home").mkdir()
    taken = None
    for second in range(30):
        (tmp_path / "new").write_text(f"content {second}")
        (tmp_path / "new").replace(path)
        taken = taken or watch.whole(float(second))
    assert taken is not None
    assert taken.files[0].kept.read_text() == "content 0"
    # One that is written in place is never whole.
    watch = CheckpointWatch([str(path)], None, tmp_path / "home")
    for second in range(30):
        path.write_text(f"content {second} " + "x" * second)
        assert watch.whole(float(second)) is None


def test_hostile_answers_of_a_store_end() -> None:
    assert s3_answers.value("<Key>a", "Key") == ""
    assert list(s3_answers.objects("<Contents>" * 10_000)) == []
    row = "<Contents><Key>a</Key><Size>99999999999999999999999</Size><LastModified>never</LastModified></Contents>"
    assert [each.size_bytes for each in s3_answers.objects(row * 2)] == [0, 0]
    code, message = s3_answers.refusal(b"<Code>No\nSuch</Code><Message>" + b"x" * 5_000 + b"</Message>")
    assert (code, len(message)) == ("No Such", 200)
    assert [s3_answers.date(text) for text in ("never", "Mon, 01 Jan 99999999 00:00:00 GMT")] == [None, None]


def made(sequence: int, progress: float | None, lease: str = "L1") -> Manifest:
    files = (ManifestFile("0/a", 1, DIGEST),)
    return Manifest(sequence, lease, 1, progress, 1.0, 1.0, 1.0, 1.0, files)


@pytest.mark.parametrize(
    ("there", "ours", "moves"),
    [
        ((5, 100.0), (6, 101.0), True),
        ((5, 100.0), (6, 99.0), False),
        ((5, 100.0), (4, 101.0), True),
        ((5, 100.0), (6, 100.0), True),
        ((5, 100.0), (5, 100.0), False),
        ((5, None), (6, 1.0), True),
        ((5, None), (4, 1.0), False),
        ((5, 100.0), (6, None), True),
    ],
)
def test_the_pointer_stays_at_the_container_with_more_progress(
    there: tuple[int, float | None], ours: tuple[int, float | None], *, moves: bool
) -> None:
    notes = BucketNotes(MemoryStore(), "root")
    assert pointer.advance(notes, made(*there, lease="other"), [])
    assert pointer.advance(notes, made(*ours), []) is moves
    assert (notes.read("latest.json") or ({}, ""))[0]["sequence"] == (ours if moves else there)[0]
    if not moves:
        # What crashed the work gives way all the same.
        assert pointer.advance(notes, made(7, 0.5), [made(*there, lease="other").name])


@pytest.mark.parametrize("progress", [99.0, 1e15])
def test_a_progress_that_falls_keeps_no_pointer_of_the_same_work(progress: float) -> None:
    notes = BucketNotes(MemoryStore(), "root")
    restored = made(5, progress, lease="before")
    assert pointer.advance(notes, restored, [])
    assert not pointer.advance(notes, made(4, 0.5), [], restored.name)
    assert pointer.advance(notes, made(6, 0.5), [], restored.name)
    assert pointer.advance(notes, made(7, 0.25), [], made(6, 0.5).name)
    # Another container of the slot is further by its progress alone.
    assert not pointer.advance(notes, made(8, 0.125, lease="other"), [], restored.name)


@pytest.mark.parametrize("number", [10**400, -(10**400), 1e308, float("nan"), float("inf"), True, "9"])
def test_a_number_of_a_pointer_that_is_out_of_bounds_is_none(number: object) -> None:
    notes = BucketNotes(MemoryStore(), "root")
    there = made(5, 1.0, lease="other").name
    notes.write("latest.json", {"version": 1, "manifest": there, "progress": number, "sequence": number})
    assert pointer.advance(notes, made(1, 1.0), [])


@pytest.mark.parametrize("told", [{"manifest": "../../etc"}, {"manifest": 1}, {}, {"manifest": "ckpt/../x.json"}])
def test_a_pointer_at_nothing_of_ours_is_replaced(told: dict[str, Any]) -> None:
    notes = BucketNotes(MemoryStore(), "root")
    notes.write("latest.json", {"version": 1, **told, "progress": 1e307, "sequence": 10**9})
    assert pointer.advance(notes, made(1, 1.0), [])


def test_a_note_that_is_too_large_to_be_ours_hides_no_checkpoint_and_is_replaced() -> None:
    store = MemoryStore()
    notes, whole = BucketNotes(store, "root"), made(1, 1.0)
    notes.write(whole.name, whole.note())
    store.put(f"root/ckpt/{whole.id}/0/a", b"a")
    store.put("root/latest.json", b"x" * (LARGEST_NOTE_BYTES + 1))
    store.put("root/ckpt/00000002-L1.json", b"x" * (LARGEST_MANIFEST_BYTES + 1))
    assert CheckpointList(notes, "L2").newest() == whole
    assert pointer.advance(notes, made(3, 3.0), [])
    assert (notes.read("latest.json") or ({}, ""))[0]["sequence"] == 3


def test_more_objects_than_a_listing_has_hide_no_checkpoint_near_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_list, "MOST_LISTED", 24)
    store = MemoryStore()
    notes, listed = BucketNotes(store, "root"), CheckpointList(BucketNotes(store, "root"), "L1")
    for number in range(1, 31):
        notes.write(made(number, 1.0).name, made(number, 1.0).note())
        store.put(f"root/ckpt/{made(number, 1.0).id}/0/a", b"a")
    pointer.advance(notes, made(30, 1.0), [])
    assert listed.pointed() == made(30, 1.0)
    assert [listed.before(made(number, 1.0)) for number in (30, 13, 1)] == [made(29, 1.0), made(12, 1.0), None]


def test_a_pointer_that_another_moves_meanwhile_is_read_again() -> None:
    store = MemoryStore()
    notes = BucketNotes(store, "root")
    pointer.advance(notes, made(1, 1.0), [])
    rival = made(9, 50.0, "L2")

    def overtaken(key: str, _body: bytes) -> None:
        if key.endswith("latest.json"):
            store.before_put = None
            store.objects[key] = Fetched(
                json.dumps({"version": 1, "manifest": rival.name, "sequence": 9, "progress": 50.0}).encode(), "rival"
            )

    store.before_put = overtaken
    assert pointer.advance(notes, made(2, 40.0), []) is False
    assert (notes.read("latest.json") or ({}, ""))[0]["manifest"] == rival.name
    store.before_put = overtaken
    assert pointer.advance(notes, made(10, 60.0), []) is True


def test_settings_with_a_number_beyond_every_float_are_bounded() -> None:
    told = {"version": 1, "paths": ["/ckpt"], "lease": "L", "keep": 10**400, "interval_seconds": -(10**400)}
    settings = guard_settings.read({"GPUBID_GUARD": json.dumps(told)})
    assert (settings.keep, settings.interval) == (100, guard_settings.LEAST_INTERVAL_SECONDS)


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    notes = BucketNotes(MemoryStore(), "root")
    big = Manifest(1, "L1", 1, None, 1.0, 1.0, 1.0, 1.0, (ManifestFile("0/a", 2**49, DIGEST),))
    with pytest.raises(DiskFailed, match="the disk has"):
        checkpoint_restore.restore(notes, big, [str(tmp_path / "ckpt")])
