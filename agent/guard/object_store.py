"""The guard's interface to a store of objects, whatever store it is. Keys begin with the mailbox's root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Protocol

LARGEST_NOTE_BYTES = 64 * 1024
LARGEST_MANIFEST_BYTES = 4 * 1024 * 1024


class StoreFailed(Exception):
    """The store does not answer now, or refuses. The message is one sentence."""


class Unreachable(StoreFailed):
    """No answer came, or one that proves nothing: a later try may work."""


class DiskFailed(StoreFailed):
    """The disk of the instance cannot be read or written, or is full."""


class Refused(StoreFailed):
    """The store said no. `status` is its HTTP code, 0 where it has none."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        """Keep the code beside the sentence."""
        super().__init__(sentence)
        self.status = status


class TooLarge(Refused):
    """The object exists, and is larger than the reader allows."""


@dataclass(frozen=True)
class Fetched:
    """A small object: its content, and the tag of this version of it."""

    body: bytes
    tag: str


@dataclass(frozen=True)
class Uploaded:
    """A file that was written: its SHA-256, and its tag in a store that tags by MD5, or an empty text.

    The tag of an object in one part is its MD5; in N parts the MD5 of their MD5s, and "-N".
    """

    sha256: str
    tag: str = ""


@dataclass(frozen=True)
class Listed:
    """An object of a listing: its key, its size, and for how many seconds it has been there by the store's clock."""

    key: str
    size_bytes: int
    age_seconds: float


class ObjectStore(Protocol):
    """A store. Every method raises StoreFailed."""

    def get(self, key: str, most_bytes: int) -> Fetched | None:
        """Return an object, or None where there is none. A larger one is refused."""
        ...

    def put(self, key: str, body: bytes, *, tag: str | None = None, is_new: bool = False) -> bool:
        """Write a small object; return False if the present one is not version `tag`, or exists although `is_new`."""
        ...

    def upload(self, key: str, file: Path) -> Uploaded:
        """Write a file. Parts that are there from an earlier try are kept."""
        ...

    def download(self, key: str, file: Path, size_bytes: int) -> str:
        """Read an object of a known size into a new file, and return its SHA-256."""
        ...

    def list(self, prefix: str, most: int) -> list[Listed]:
        """Return the objects whose keys begin so, `most` at most."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""
        ...

    def abort_stale(self, prefix: str, is_stale: Callable[[str, float], bool]) -> None:
        """Drop unfinished uploads whose key and age in seconds are stale."""
        ...
