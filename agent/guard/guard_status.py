"""The guard's status: the fields of its beat."""

from __future__ import annotations

import contextlib
import math
import shutil
import threading
from pathlib import Path
from typing import Any

RESTORING, RUNNING, UPLOADING, ENDING, DONE, FAILED = "restoring", "running", "uploading", "ending", "done", "failed"
VERSION = 1
MOST_PROGRESS = 1e15
_LONGEST_PROGRESS = 64
_FIELDS = (
    "progress",
    "manifest",
    "checkpoint_bytes",
    "checkpoint_took_seconds",
    "upload_seconds",
    "upload_lag_seconds",
    "restore_seconds",
    "restored",
    "answered",
    "gpu_use",
    "notice",
)


class GuardStatus:
    """The newest value of every field; safe for threads."""

    def __init__(self, lease: str, progress_file: Path | None, disk: Path) -> None:
        """Begin with nothing known but the lease."""
        self._lock = threading.Lock()
        self._lease = lease
        self._progress_file = progress_file
        self._disk = disk
        self._sequence = 0
        self._fields: dict[str, Any] = dict.fromkeys(_FIELDS)
        self.phase = RESTORING

    def set(self, **fields: Any) -> None:  # noqa: ANN401 - any JSON
        """Keep new values."""
        with self._lock:
            self._fields.update(fields)

    def is_working(self) -> bool:
        """Return whether the work runs."""
        return self.phase in (RUNNING, UPLOADING)

    def set_progress(self, number: float | None) -> None:
        """Set the progress back to that of a restored checkpoint; without one it is unknown."""
        if self._progress_file is not None:
            with contextlib.suppress(OSError):
                if number is None:
                    self._progress_file.unlink()
                else:
                    self._progress_file.write_text(f"{number}\n")

    def progress(self) -> float | None:
        """Return the number that the work last wrote, or None."""
        return read_number(self._progress_file) if self._progress_file is not None else None

    def beat(self, now: float) -> dict[str, Any]:
        """Return the next beat."""
        with self._lock:
            self._sequence += 1
            return {
                "version": VERSION,
                "sequence": self._sequence,
                "lease": self._lease,
                "boot_seconds": round(now, 3),
                "phase": self.phase,
                **self._fields,
                "progress": self.progress(),
                "free_disk_bytes": _free(self._disk),
            }


def read_number(path: Path) -> float | None:
    """Return the finite number that a file begins with, or None."""
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_PROGRESS).split()
        number = float(text[0])
    except (OSError, ValueError, IndexError):
        return None
    if not math.isfinite(number) or abs(number) > MOST_PROGRESS:
        return None
    return int(number) if number.is_integer() else number


def _free(disk: Path) -> int | None:
    try:
        return shutil.disk_usage(disk).free
    except OSError:
        return None
