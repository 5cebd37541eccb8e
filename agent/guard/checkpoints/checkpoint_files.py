"""The files of a checkpoint, as they are on the disk now.

A file's name in a checkpoint is the number of its path in the settings, and the way below it: `0/step-7/model.pt`. It
is `0` if the path is the file itself. So a checkpoint fits another host whose paths have other names.
"""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Sequence

MOST_FILES = 20_000
"""A manifest of more would be larger than its 4 MB."""
PARTIAL = ".gpubid-part"
"""The ending of the name of a file that is being restored."""
OWN_FOLDER = ".gpubid-guard"


class TooManyFiles(Exception):
    """There are more files below the paths than a manifest names."""


@dataclass(frozen=True)
class SeenFile:
    """A file of a checkpoint: its name in it, and where and how it is on the disk."""

    name: str
    path: Path
    size_bytes: int
    written_nanoseconds: int
    inode: int

    def is_unchanged(self, path: Path) -> bool:
        """Return whether a path still has this very content, as far as size and time show."""
        try:
            now = path.stat()
        except OSError:
            return False
        return (now.st_size, now.st_mtime_ns) == (self.size_bytes, self.written_nanoseconds)


@dataclass(frozen=True)
class SeenCheckpoint:
    """The files at one look, by name."""

    files: tuple[SeenFile, ...]

    @property
    def mark(self) -> str:
        """Return a text that is the same for each look at the same files."""
        return hashlib.sha256(repr(self.files).encode("utf-8", "replace")).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Return the size of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def newest_seconds(self) -> float:
        """Return when the last of them was written, by the host's wall clock."""
        return max(file.written_nanoseconds for file in self.files) / 1e9


def look(paths: Sequence[str], complete: str | None) -> SeenCheckpoint | None:
    """Return the checkpoint below the paths, or None; with `complete`, the newest whole one."""
    roots = [Path(os.path.realpath(path)) for path in paths]
    folders = _complete_folders(roots, complete) if complete is not None else list(enumerate(roots))
    files: list[SeenFile] = []
    for number, folder in folders:
        for file in _files(number, folder, roots):
            files.append(file)
            if len(files) > MOST_FILES:
                raise TooManyFiles(f"more than {MOST_FILES} files")
    return SeenCheckpoint(tuple(sorted(files, key=lambda file: file.name))) if files else None


def _complete_folders(roots: Sequence[Path], pattern: str) -> list[tuple[int, Path]]:
    """Return the folder of each root's newest file that matches; for a root that is that file, the root itself."""
    found: list[tuple[int, Path]] = []
    for number, root in enumerate(roots):
        markers = list(_matching(root, pattern))
        if markers:
            newest = max(markers)[1]
            found.append((number, newest.parent if newest != root else root))
        elif root.is_file() and fnmatch.fnmatch(root.name, pattern):
            found.append((number, root))
    return found


def _matching(root: Path, pattern: str) -> Iterator[tuple[int, Path]]:
    """Yield the files that match, each after the time of its last change; the work may remove them meanwhile."""
    try:
        for path in root.glob(pattern):
            if path.is_file() and not path.name.endswith(PARTIAL):
                with contextlib.suppress(FileNotFoundError):
                    yield path.stat().st_mtime_ns, path
    except (OSError, ValueError, NotImplementedError):
        return


def _files(number: int, folder: Path, roots: Sequence[Path]) -> Iterator[SeenFile]:
    root = roots[number]
    if folder.is_file():
        yield from _seen(str(number), folder, roots)
        return
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != OWN_FOLDER]
        for name in names:
            path = Path(place, name)
            if not name.endswith(PARTIAL):
                yield from _seen(f"{number}/{path.relative_to(root).as_posix()}", path, roots)


def _seen(name: str, path: Path, roots: Sequence[Path]) -> Iterator[SeenFile]:
    """Yield a plain file, or the target of a link if it is below the paths; skip a file that has vanished."""
    try:
        if path.is_symlink():
            path = Path(os.path.realpath(path))
            if not any(is_below(path, root) for root in roots):
                return
        status = path.stat()
        name.encode()
    except (OSError, ValueError):
        return
    if os.path.isfile(path):  # noqa: PTH113 - no exception for a file that went
        yield SeenFile(name, path, status.st_size, status.st_mtime_ns, status.st_ino)


def is_below(path: Path, root: Path) -> bool:
    """Return whether a path is a root or is below it."""
    return path == root or root in path.parents
