"""Brings a checkpoint from the bucket to the disk: all files beside their places, compared, then all in place."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Sequence

from agent.guard.bucket_notes import BucketNotes
from agent.guard.checkpoints.checkpoint_files import PARTIAL, is_below
from agent.guard.checkpoints.manifest import FOLDER, Manifest, ManifestFile
from agent.guard.object_store import DiskFailed, StoreFailed

SPARE_BYTES = 16 * 1024 * 1024


class WrongContent(StoreFailed):
    """The content that came differs from the manifest."""


def restore(notes: BucketNotes, manifest: Manifest, paths: Sequence[str]) -> None:
    """Write the files of a manifest below the paths, or raise StoreFailed; earlier files stay until all came."""
    targets = [(file, target(file.path, paths)) for file in manifest.files]
    for file, place in targets:
        _make_room(file, place)
        partial = place.with_name(place.name + PARTIAL)
        key = notes.key(f"{FOLDER}/{manifest.id}/{file.path}")
        if notes.store.download(key, partial, file.size_bytes) != file.sha256:
            partial.unlink()
            raise WrongContent(f"{file.path} of {manifest.id} has another digest")
    for _, place in targets:
        _put_in_place(place)


def target(name: str, paths: Sequence[str]) -> Path:
    """Return where a file of a checkpoint belongs; one that leads out of its path is refused."""
    number, _, below = name.partition("/")
    if int(number) >= len(paths):
        raise WrongContent(f"{name} belongs to a path that this workload does not have")
    root = Path(os.path.realpath(paths[int(number)]))
    place = root / below if below else root
    if not is_below(Path(os.path.realpath(place.parent)), root if below else root.parent) or place.is_symlink():
        raise WrongContent(f"{name} leads out of {root} by a link")
    return place


def _make_room(file: ManifestFile, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(place.parent).free
    except OSError as failure:
        raise DiskFailed(f"{place.parent} cannot be made ({failure.strerror})") from None
    if file.size_bytes + SPARE_BYTES > free:
        raise DiskFailed(f"{file.path} has {file.size_bytes} bytes, the disk has {free} free")


def _put_in_place(place: Path) -> None:
    try:
        if place.is_dir():
            raise DiskFailed(f"{place} is a folder")
        place.with_name(place.name + PARTIAL).replace(place)
    except OSError as failure:
        raise DiskFailed(f"{place} cannot be written ({failure.strerror})") from None
