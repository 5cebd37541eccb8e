"""The upload under way: kept on the disk too, so that the next guard goes on with the upload of a killed one."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Mapping

from agent.guard.checkpoints.checkpoint_aside import AsideCheckpoint, AsideFile
from agent.guard.checkpoints.checkpoint_files import SeenCheckpoint, SeenFile

MOST_FILES = 1_000
"""A plan of more files is not kept: it would be written too often."""
LARGE_BYTES = 8 * 1024 * 1024
"""After a file of this size the disk learns how far the upload is."""


@dataclass(frozen=True)
class UploadPlan:
    """A checkpoint that was taken aside, its figures, and its part in the bucket. Times are the host's own."""

    aside: AsideCheckpoint
    sequence: int
    progress: float | None
    wall_seconds: float
    boot_seconds: float
    took_seconds: float
    order: str | None = None
    """The order that it answers."""
    digests: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files in the bucket, by name."""
    tags: dict[str, str] = field(default_factory=dict)
    """The store's tags of these files, as far as they are known."""

    def note(self) -> dict[str, Any] | None:
        """Return it as the disk keeps it, or None where it is too long."""
        if len(self.aside.files) > MOST_FILES:
            return None
        return {
            "sequence": self.sequence,
            "progress": self.progress,
            "order": self.order,
            "times": [self.wall_seconds, self.boot_seconds, self.took_seconds],
            "files": [[*map(str, astuple(file.seen)), str(file.kept)] for file in self.aside.files],
            "folders": [str(folder) for folder in self.aside.folders],
            "digests": self.digests,
            "tags": self.tags,
        }


def read(note: object) -> UploadPlan | None:
    """Return the plan that the disk kept, if every file of it is still as it was."""
    if not isinstance(note, dict):
        return None
    try:
        plan = _plan(note)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError):
        return None
    return plan if plan.aside.files and plan.aside.is_unchanged else None


def _plan(note: Mapping[str, Any]) -> UploadPlan:
    files = tuple(_file(row) for row in note["files"])
    seen = SeenCheckpoint(tuple(file.seen for file in files))
    aside = AsideCheckpoint(seen, files, tuple(Path(str(folder)) for folder in note["folders"]))
    wall, boot, took = (float(value) for value in note["times"])
    progress, order = note["progress"], note["order"]
    digests = {str(name): str(digest) for name, digest in note["digests"].items()}
    tags = {str(name): str(tag) for name, tag in note.get("tags", {}).items()}
    return UploadPlan(aside, int(note["sequence"]), progress, wall, boot, took, order, digests, tags)


def _file(row: Any) -> AsideFile:  # noqa: ANN401 - any JSON
    name, path, size, written, inode, kept = (str(value) for value in row)
    return AsideFile(SeenFile(name, Path(path), int(size), int(written), int(inode)), Path(kept))
