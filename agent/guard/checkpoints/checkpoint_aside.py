"""Takes a checkpoint aside: by links, which keep its files while the work replaces or deletes them; else by copies."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Collection, Iterator, Sequence

from agent.guard.checkpoints.checkpoint_files import OWN_FOLDER, SeenCheckpoint, SeenFile
from agent.guard.checkpoints.checkpoint_restore import SPARE_BYTES
from agent.guard.object_store import DiskFailed

_ASIDE = "aside-"
"""How the name of such a folder begins. Guards of earlier releases numbered them."""
OTHERS_SECONDS = 86_400.0


@dataclass(frozen=True)
class AsideFile:
    """A file of a checkpoint, and where its content is kept."""

    seen: SeenFile
    kept: Path

    @property
    def is_unchanged(self) -> bool:
        """Return whether the content is the one that was seen."""
        return self.seen.is_unchanged(self.kept)


class AsideCheckpoint:
    """The files of one checkpoint, kept until it is dropped."""

    def __init__(self, seen: SeenCheckpoint, files: tuple[AsideFile, ...], folders: tuple[Path, ...]) -> None:
        """Keep the files that were taken."""
        self.seen = seen
        self.files = files
        self.folders = folders

    @property
    def is_unchanged(self) -> bool:
        """Return whether no file changed since it was seen."""
        return all(file.is_unchanged for file in self.files)

    def drop(self) -> None:
        """Remove the links and copies."""
        for folder in self.folders:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                folder.parent.rmdir()


def taken(seen: SeenCheckpoint, home: Path | None, name: str, *, may_copy: bool = True) -> AsideCheckpoint:
    """Take every file aside, or raise DiskFailed. A link is in the guard's folder, or beside the file on its disk."""
    folders: list[Path] = []
    files = []
    for number, file in enumerate(seen.files):
        kept = _linked(file, home, name, number, folders)
        if kept is None and may_copy:
            # Without space for a copy it is read where it is, and its size and time are compared afterwards.
            kept = _copied(file, home, name, number, folders) or file.path
        if kept is None:
            AsideCheckpoint(seen, (), tuple(folders)).drop()
            raise DiskFailed(f"{file.path} cannot be taken aside")
        files.append(AsideFile(file, kept))
    return AsideCheckpoint(seen, tuple(files), tuple(folders))


def name_of(lease: str, begun: float, number: int) -> str:
    """Return the name of a folder of links that no other guard, and no other start of one, uses on this disk.

    `begun` is when this guard began, in seconds since the host's boot.
    """
    return f"{_of_lease(lease)}{int(begun * 1000)}-{number}"


def clear(home: Path | None, paths: Sequence[str], lease: str, kept: Collection[Path], wall_seconds: float) -> None:
    """Remove the links and copies that killed guards left, but those in `kept`; `wall_seconds` is the host's time.

    Two containers may share a volume: folders of other leases go after a day. Files that were moved away stay.
    """
    for own in {*([home / OWN_FOLDER] if home is not None else []), *_own_folders(paths)}:
        with contextlib.suppress(OSError):
            for folder in own.iterdir():
                if folder not in kept and _is_leftover(folder, lease, wall_seconds):
                    shutil.rmtree(folder, ignore_errors=True)
            own.rmdir()


def _own_folders(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the guard's folders beside the files of a checkpoint."""
    for root in (Path(os.path.realpath(path)) for path in paths):
        yield root.parent / OWN_FOLDER
        for place, folders, _ in os.walk(root):
            if OWN_FOLDER in folders:
                folders.remove(OWN_FOLDER)
                yield Path(place, OWN_FOLDER)


def _is_leftover(folder: Path, lease: str, wall_seconds: float) -> bool:
    if folder.name.isdigit() or folder.name.startswith(_of_lease(lease)):
        return folder.is_dir()
    is_old = folder.name.startswith(_ASIDE) and wall_seconds - folder.stat().st_mtime > OTHERS_SECONDS
    return is_old and folder.is_dir()


def _of_lease(lease: str) -> str:
    return f"{_ASIDE}{re.sub(r'[^A-Za-z0-9._]', '_', lease)[:100]}-"


def _linked(file: SeenFile, home: Path | None, name: str, number: int, folders: list[Path]) -> Path | None:
    for place in (*folders, *([home / OWN_FOLDER / name] if home else []), file.path.parent / OWN_FOLDER / name):
        kept = place / str(number)
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if place not in folders:
                folders.append(place)
            kept.unlink(missing_ok=True)
            os.link(file.path, kept)
            return kept
    return None


def _copied(file: SeenFile, home: Path | None, name: str, number: int, folders: list[Path]) -> Path | None:
    if home is None:
        return None
    place = home / OWN_FOLDER / name
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if place not in folders:
            folders.append(place)
        if shutil.disk_usage(place).free < file.size_bytes + SPARE_BYTES:
            return None
        return Path(shutil.copy2(file.path, place / str(number)))
    # Half a copy would take the work's room until the upload is over.
    with contextlib.suppress(OSError):
        (place / str(number)).unlink()
    return None
