"""A checkpoint in a bucket as a host may write it: one that is not whole, not safe or not its own proves nothing."""

from typing import Any

import msgspec
import pytest

from agent.domain.work import carried_checkpoint
from agent.domain.work.carried_checkpoint import CarriedCheckpoint, CheckpointPointer, StoredObject

NAME = "ckpt/00000003-a1.json"
TAG, OTHER = "0" * 32, "1" * 32 + "-2"
FILE = {"path": "0/model.pt", "size_bytes": 7, "sha256": "0" * 64, "etag": TAG}
NOTE = {
    "version": 1,
    "sequence": 3,
    "lease": "a1",
    "run": 1,
    "progress": 5.0,
    "taken_wall_seconds": 1.0,
    "taken_boot_seconds": 1.0,
    "took_seconds": 1.0,
    "uploaded_seconds": 1.0,
    "files": [FILE],
}
THERE = StoredObject("f/ckpt/00000003-a1/0/model.pt", 7, TAG)


def read(**changes: Any) -> CarriedCheckpoint | None:
    return carried_checkpoint.read(msgspec.json.encode({**NOTE, **changes}), CarriedCheckpoint)


def refused(name: str = NAME, run: int = 1, paths: int = 1, stored: Any = None, **changes: Any) -> str:
    made = read(**changes)
    assert made is not None
    return carried_checkpoint.refusal(made, name, run, paths, {"0/model.pt": THERE} if stored is None else stored)


def file(**changes: Any) -> dict[str, Any]:
    return {"files": [{**FILE, **changes}]}


def test_a_whole_checkpoint_is_not_refused() -> None:
    assert refused() == ""
    two = [FILE, {**FILE, "path": "1", "size_bytes": 9, "etag": OTHER}]
    assert refused(paths=2, files=two, stored={"0/model.pt": THERE, "1": StoredObject("1", 9, OTHER)}) == ""


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"run": 2}, "of run 1"),
        ({"name": "ckpt/00000004-a1.json"}, "says that it is ckpt/00000003-a1.json"),
        ({"lease": "b2"}, "says that it is ckpt/00000003-b2.json"),
        ({"sequence": 4}, "says that it is ckpt/00000004-a1.json"),
        ({"stored": {}}, "the bucket has 0 files"),
        ({"stored": {"0/model.pt": THERE, "0/more": THERE}}, "the bucket has 2 files"),
        ({"stored": {"0/other": THERE}}, "or they have other names"),
        ({"stored": {"0/model.pt": StoredObject("x", 8, TAG)}}, "has 8 bytes in the bucket, not 7"),
        ({"stored": {"0/model.pt": StoredObject("x", 7, OTHER)}}, "keys of a KMS"),
        ({"stored": {"0/model.pt": StoredObject("x", 7, "")}}, "another checksum in the store"),
        (file(etag=""), "no checksum of the store's kind"),
        (file(path="0/../model.pt"), "a path that no guard would restore"),
        (file(path="/etc/passwd"), "a path that no guard would restore"),
        (file(path="0//model.pt"), "a path that no guard would restore"),
        (file(path="0/a\\b"), "a path that no guard would restore"),
        (file(path="0/a\nb"), "a path that no guard would restore"),
        (file(path="1/model.pt"), "a path that no guard would restore"),
        (file(path="0/" + "a" * 256), "a path that no guard would restore"),
        ({"files": [FILE, FILE]}, "names a file twice"),
    ],
)
def test_what_is_not_whole_or_not_its_own_is_refused(changes: dict[str, Any], why: str) -> None:
    given = {"run": 1, **changes}
    run = given.pop("run")
    assert why in (refused(run=run, **given) if run == 1 else refused(run=run))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"sequence": -1},
        {"sequence": 10**8},
        {"sequence": 10**400},
        {"lease": "a" * 1_001},
        {"progress": 1e308},
        {"files": []},
        {"files": [FILE] * 20_001},
        {"took_seconds": -1},
        {"uploaded_seconds": None},
        file(size_bytes=-1),
        file(size_bytes=2**51),
        file(sha256="0" * 63),
        file(sha256="0" * 64 + "\n"),
        file(etag="0" * 31),
        file(etag="0" * 32 + "-123456"),
        file(path="a" * 1_001),
    ],
)
def test_a_manifest_out_of_bounds_is_none(changes: dict[str, Any]) -> None:
    assert read() is not None
    assert read(**changes) is None


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"[" * 60_000, b"{}", b"[]"])
def test_what_is_no_note_is_none(content: bytes | None) -> None:
    assert carried_checkpoint.read(content, CheckpointPointer) is None


@pytest.mark.parametrize(
    ("ours", "before", "is_refused"),
    [
        (5.0, 4.0, False),
        (5.0, 5.0, False),
        (5.0, 6.0, True),
        (None, 4.0, True),
        (5.0, None, False),
        (None, None, False),
    ],
)
def test_progress_never_goes_back(ours: float | None, before: float | None, *, is_refused: bool) -> None:
    made, earlier = read(progress=ours), read(sequence=2, progress=before)
    assert made is not None
    assert earlier is not None
    assert ("less progress than" in carried_checkpoint.went_back(made, {earlier.name: earlier})) is is_refused


def test_only_names_of_manifests_have_a_number() -> None:
    assert carried_checkpoint.sequence_of(NAME) == 3
    wrong = (
        "ckpt/3-a.json",
        "ckpt/00000003-a",
        "x/00000003-a.json",
        "ckpt/00000003-a/../b.json",
        "ckpt/00000003-.json\n",
    )
    assert [carried_checkpoint.sequence_of(name) for name in wrong] == [None] * len(wrong)
