"""A checkpoint by the bucket's manifest: its files, and whether the store really has them.

A host may have written all of it, so each field has bounds. The guard has its own code to read the same notes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, TypeVar

import msgspec

from agent.domain.work.guard_report import Fraction, Name, Seconds

FOLDER = "ckpt"
POINTER = "latest.json"
MOST_FILES = 20_000
MOST_PATHS_BYTES = 255
_NAME = re.compile(rf"{FOLDER}/(?P<id>(?P<sequence>[0-9]{{8}})-[A-Za-z0-9._-]{{1,100}})\.json")
_INSTANT = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a listing. `tag` is the store's own checksum of it, empty if the store reports none."""

    name: str
    size_bytes: int
    tag: str


class CheckpointPointer(msgspec.Struct, frozen=True):
    """The note that names the newest checkpoint of a run."""

    version: Literal[1]
    manifest: Name


class CarriedFile(msgspec.Struct, frozen=True):
    """A file of a checkpoint. `etag` is the tag that a store with MD5 tags must give it, empty if not computed."""

    path: Annotated[str, msgspec.Meta(max_length=1_000)]
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)]
    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    etag: Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{32}(-[0-9]{1,5})?)?\Z")] = ""


class CarriedCheckpoint(msgspec.Struct, frozen=True):
    """A manifest: the files of a checkpoint, written after all of them. Times are the host's own."""

    version: Literal[1]
    sequence: Annotated[int, msgspec.Meta(ge=0, lt=10**8)]
    lease: Annotated[str, msgspec.Meta(max_length=1_000)]
    run: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    taken_wall_seconds: _INSTANT
    taken_boot_seconds: _INSTANT
    took_seconds: Seconds
    uploaded_seconds: Seconds
    files: Annotated[list[CarriedFile], msgspec.Meta(min_length=1, max_length=MOST_FILES)]
    progress: Fraction | None = None

    @property
    def name(self) -> str:
        """The name that it must have below the run's folder."""
        return f"{FOLDER}/{self.sequence:08d}-{_written(self.lease)}.json"


@dataclass(frozen=True, slots=True)
class CheckpointProof:
    """The comparison of a run's newest checkpoint with its bucket; `refusal` says why it proves nothing."""

    read_at: datetime
    """When the comparison began."""
    manifest: str = ""
    sequence: int = 0
    refusal: str = ""


def sequence_of(name: str) -> int | None:
    """Return the number in a manifest's name; None for another name."""
    match = _NAME.fullmatch(name)
    return int(match["sequence"]) if match is not None else None


def is_of(name: str, lease: str) -> bool:
    """Return whether the manifest of that name was carried by the guard of the lease that this intent rented."""
    return sequence_of(name) is not None and name.endswith(f"-{_written(lease)}.json")


def _written(lease: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", lease)[:100]


def folder_of(name: str) -> str:
    """Return the folder of a manifest's files."""
    return name.removesuffix(".json")


def read(content: bytes | None, kind: type[T]) -> T | None:
    """Return the note in an object, or None if it has no note of that shape."""
    try:
        return None if content is None else msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def refusal(checkpoint: CarriedCheckpoint, name: str, run: int, paths: int, stored: Mapping[str, StoredObject]) -> str:
    """Return why the checkpoint named `name` is not whole in the store; empty if it is.

    `stored` are the objects in its folder, by their names there. `paths` is the number of paths that the guard carries.
    """
    if checkpoint.name != name or checkpoint.run != run:
        return f"{name} says that it is {checkpoint.name} of run {checkpoint.run}"
    names = [file.path for file in checkpoint.files]
    unsafe = next((path for path in names if not _is_safe(path, paths)), None)
    if unsafe is not None:
        return f"{name} has a path that no guard would restore"
    if len(set(names)) != len(names):
        return f"{name} names a file twice"
    if stored.keys() != set(names):
        return f"the bucket has {len(stored)} files of {name}, which names {len(names)}, or they have other names"
    for number, file in enumerate(checkpoint.files, start=1):
        why = _differs(file, stored[file.path])
        if why:
            return f"file {number} of {name} {why}"
    return ""


def went_back(checkpoint: CarriedCheckpoint, earlier: Mapping[str, CarriedCheckpoint]) -> str:
    """Return which earlier checkpoint has more progress, or an empty text."""
    for name, before in earlier.items():
        if before.progress is not None and (checkpoint.progress is None or checkpoint.progress < before.progress):
            return f"{checkpoint.name} has less progress than {name} before it"
    return ""


def _differs(file: CarriedFile, there: StoredObject) -> str:
    if file.size_bytes != there.size_bytes:
        return f"has {there.size_bytes} bytes in the bucket, not {file.size_bytes}"
    if not file.etag:
        return "has no checksum of the store's kind in the manifest"
    if file.etag != there.tag:
        return (
            "has another checksum in the store than in the manifest; a store that encrypts with keys of a KMS, and one "
            "that does not tag by MD5, never gives the one that is expected"
        )
    return ""


def _is_safe(path: str, paths: int) -> bool:
    parts = path.split("/")
    return (
        re.fullmatch(r"[0-9]{1,3}", parts[0]) is not None
        and int(parts[0]) < paths
        and all(
            part not in {"", ".", ".."} and len(part.encode(errors="replace")) <= MOST_PATHS_BYTES for part in parts
        )
        and path.isprintable()
        and "\\" not in path
    )
