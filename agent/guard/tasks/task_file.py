"""The task that this container works on, on its disk: a restart has the environment of the rent, and goes on with it.

1. A task is on the disk before anything of the task before is removed, and it begins only on clean paths.
2. Files of another rent on the disk are ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Collection, Sequence

from agent.guard import guard_origin
from agent.guard.disk_state import MOST_BYTES
from agent.guard.tasks import next_task
from agent.guard.tasks.next_task import NextTask

NAME = "task.json"
_OF_THE_TASK = ("state.json", "notice", "progress", "logs")
"""Files and folders of the guard that are about one task."""


class TaskFile:
    """The task on one disk, for the rent with one name."""

    def __init__(self, place: Path, rented: str) -> None:
        """Keep it in the guard's folder."""
        self._place = place
        self._rented = rented

    def task(self, allowed: Collection[str]) -> NextTask | None:
        """Return the task that a guard of this rent took, or None if it still has the rent's own."""
        kept = self._read()
        return next_task.parsed(kept, allowed) if kept.get("rented") == self._rented else None

    def take(self, task: NextTask) -> bool:
        """Write a task down; return whether the disk has it."""
        return self._write(task, is_clean=False)

    def cleaned(self, task: NextTask, paths: Sequence[str]) -> bool:
        """Remove the files of the task before, once; return whether a path has none of them any more."""
        if self._read().get("is_clean") is True:
            return True
        for path in map(Path, paths):
            guard_origin.remove(path)
        for name in _OF_THE_TASK:
            _forget(self._place / name)
        if any(guard_origin.has_files(Path(path)) for path in paths):
            return False
        return self._write(task, is_clean=True)

    def forget(self) -> None:
        """Go back to the rent's own task, which is done."""
        _forget(self._place / NAME)

    def _read(self) -> dict[str, Any]:
        try:
            with (self._place / NAME).open("rb") as file:
                kept = json.loads(file.read(MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        return kept if isinstance(kept, dict) else {}

    def _write(self, task: NextTask, *, is_clean: bool) -> bool:
        new = self._place / f"{NAME}.new"
        kept = {**task.note(), "rented": self._rented, "is_clean": is_clean}
        try:
            with new.open("w", encoding="utf-8") as file:
                json.dump(kept, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._place / NAME)
        except (OSError, ValueError):
            return False
        return True


def _forget(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
