"""The list of a checkpoint's files, written last. One that was read is hostile input: every field has bounds."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Iterator, Mapping

from agent.guard.checkpoints.checkpoint_files import MOST_FILES, OWN_FOLDER, PARTIAL

VERSION = 1
FOLDER = "ckpt"
MOST_SEQUENCE, MOST_FILE_BYTES = 10**8 - 1, 2**50
_LONGEST_NAME, _LONGEST_PART = 1_000, 255
_DIGEST = re.compile(r"[0-9a-f]{64}")
_ETAG = re.compile(r"([0-9a-f]{32}(-[0-9]{1,5})?)?")
_ID = re.compile(r"(\d{8})-([A-Za-z0-9._-]{1,100})")


class WrongManifest(Exception):
    """A manifest cannot be believed. The message is one sentence."""


@dataclass(frozen=True)
class ManifestFile:
    """A file: its name as in checkpoint_files, its size and its digest.

    `etag` is the store's tag of its content, if the store tags by MD5; empty if it is not known.
    """

    path: str
    size_bytes: int
    sha256: str
    etag: str = ""


@dataclass(frozen=True)
class Manifest:
    """A checkpoint in the bucket. Times are the host's own."""

    sequence: int
    lease: str
    run: int
    progress: float | None
    taken_wall_seconds: float
    taken_boot_seconds: float
    took_seconds: float
    uploaded_seconds: float
    files: tuple[ManifestFile, ...]

    @property
    def id(self) -> str:
        """Return its name in the bucket."""
        return checkpoint_id(self.sequence, self.lease)

    @property
    def name(self) -> str:
        """Return the note's name in the mailbox."""
        return f"{FOLDER}/{self.id}.json"

    @property
    def size_bytes(self) -> int:
        """Return the size of all files."""
        return sum(file.size_bytes for file in self.files)

    def note(self) -> dict[str, Any]:
        """Return its note."""
        return {"version": VERSION, **asdict(self)}

    def too_large(self, most_bytes: int) -> bool:
        """Return whether its note is larger than anybody reads."""
        return len(json.dumps(self.note())) > most_bytes


def checkpoint_id(sequence: int, lease: str) -> str:
    """Return the name of a checkpoint: sequences sort, and two containers of one slot never share one."""
    return f"{sequence:08d}-{re.sub(r'[^A-Za-z0-9._-]', '_', lease)[:100]}"


def id_of(name: str) -> tuple[int, str] | None:
    """Return sequence and id that the name of a note or of a folder begins with, or None."""
    found = _ID.fullmatch(name[:-5] if name.endswith(".json") else name)
    return (int(found[1]), found[0]) if found else None


def read(note: Mapping[str, Any], name: str) -> Manifest:
    """Return the manifest of a note whose name in the mailbox is `name`, or raise WrongManifest."""
    files = note.get("files")
    if not isinstance(files, list) or not files or len(files) > MOST_FILES:
        raise WrongManifest(f"{name} names no files, or too many")
    manifest = Manifest(
        sequence=int(_number(note, "sequence", MOST_SEQUENCE)),
        lease=_text(note.get("lease")),
        run=int(_number(note, "run", 2**31)),
        progress=None if note.get("progress") is None else _number(note, "progress", 1e15, least=-1e15),
        taken_wall_seconds=_number(note, "taken_wall_seconds", 1e12),
        taken_boot_seconds=_number(note, "taken_boot_seconds", 1e12),
        took_seconds=_number(note, "took_seconds", 1e9),
        uploaded_seconds=_number(note, "uploaded_seconds", 1e9),
        files=tuple(_file(each) for each in files),
    )
    if manifest.name != name:
        raise WrongManifest(f"{name} says that it is {manifest.name}")
    names = {file.path for file in manifest.files}
    if len(names) != len(files):
        raise WrongManifest(f"{name} names a file twice")
    if any(folder in names for path in names for folder in _folders(path)):
        raise WrongManifest(f"{name} names a file that is a folder too")
    return manifest


def _folders(path: str) -> Iterator[str]:
    """Yield the folders of a file's name, the nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def is_safe(path: str) -> bool:
    """Return whether a file's name leads nowhere but below its path."""
    parts = path.split("/")
    return (
        len(path) <= _LONGEST_NAME
        and re.fullmatch(r"\d{1,3}", parts[0]) is not None
        and all(part not in {"", ".", ".."} and len(part.encode()) <= _LONGEST_PART for part in parts)
        and all(letter.isprintable() for letter in path)
        and "\\" not in path
        and OWN_FOLDER not in parts[:-1]
        and not path.endswith(PARTIAL)
    )


def _file(value: object) -> ManifestFile:
    if not isinstance(value, dict):
        raise WrongManifest("a file is no object")
    path, digest = value.get("path"), value.get("sha256")
    if not isinstance(path, str) or not is_safe(path):
        raise WrongManifest(f"the path {str(path)[:100]!r} may lead elsewhere")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise WrongManifest(f"{path} has no digest")
    etag = value.get("etag", "")
    if not isinstance(etag, str) or not _ETAG.fullmatch(etag):
        raise WrongManifest(f"{path} has no tag of a store")
    return ManifestFile(path, int(_number(value, "size_bytes", MOST_FILE_BYTES)), digest, etag)


def _number(note: Mapping[str, Any], key: str, most: float, least: float = 0) -> float:
    value = note.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise WrongManifest(f"{key} is no number")
    # NaN and infinity are never within bounds. Some integers are larger than every float.
    if not least <= value <= most:
        raise WrongManifest(f"{key} is out of bounds")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_NAME:
        raise WrongManifest("the lease is no text")
    return value
