"""The guard's files on the instance's disk: a few facts, and the notice of a stop. A torn file counts as none."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any, Mapping, Sequence

MOST_BYTES = 1024 * 1024
_MOST_SECONDS = 1e15
_STATE, _NOTICE = "state.json", "notice"


def folder(environment: Mapping[str, str]) -> Path | None:
    """Return the guard's folder, made if need be; None where no folder can be written."""
    named = environment.get("GPUBID_GUARD_HOME")
    home = environment.get("HOME")
    choices: Sequence[str | None] = (
        named,
        "/var/lib/gpubid-guard",
        f"{home}/.gpubid-guard" if home else None,
        "/tmp/gpubid-guard",  # noqa: S108 - the last resort of a container whose other folders cannot be written
    )
    return next((Path(each) for each in choices if each and _is_usable(Path(each))), None)


def _is_usable(place: Path) -> bool:
    trial = place / f".trial-{os.getpid()}"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        trial.write_bytes(b"")
        trial.unlink()
    except OSError:
        return False
    return True


class DiskState:
    """Facts of this run on this disk. Nothing is kept where there is no folder."""

    def __init__(self, place: Path | None, run: int) -> None:
        """Read the facts that an earlier guard of the same run left."""
        self._place = place
        self._run = run
        self._lock = threading.Lock()
        left = _read(place / _STATE) if place is not None else None
        self.found = left is not None and left.get("run") == run
        self.facts: dict[str, Any] = left if left is not None and self.found else {}

    def keep(self, **facts: Any) -> bool:  # noqa: ANN401 - any JSON
        """Write facts beside those that are there; return whether the disk has them now."""
        with self._lock:
            self.facts.update(facts, run=self._run)
            return self._place is not None and _write(self._place / _STATE, self.facts)

    def note_stop(self, now: float) -> None:
        """Write the time at which a stop was announced, before anything else is done."""
        if self._place is not None:
            _write(self._place / _NOTICE, {"run": self._run, "sigterm": now, "alive": now})

    def note_alive(self, now: float) -> None:
        """Write that the guard was still alive after the announcement; the kernel keeps it when the guard is killed."""
        if self._place is not None:
            notice = _read(self._place / _NOTICE) or {}
            _write(self._place / _NOTICE, {**notice, "alive": now}, is_synced=False)

    def taken_notice(self) -> Mapping[str, Any] | None:
        """Return the earlier guard's notice of a stop, once: whether a signal came, and the seconds until its silence.

        None if no guard ran here before, or if it ended by itself.
        """
        if self._place is None or not self.found or self.facts.get("ended"):
            return None
        notice = _read(self._place / _NOTICE) or {}
        with contextlib.suppress(OSError):
            (self._place / _NOTICE).unlink()
        begun, alive = _number(notice.get("sigterm")), _number(notice.get("alive"))
        if notice.get("run") != self._run or begun is None or alive is None:
            return {"sigterm_seen": False, "seconds": 0.0}
        return {"sigterm_seen": True, "seconds": round(max(alive - begun, 0.0), 2)}


def _number(value: object) -> float | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < _MOST_SECONDS else None  # type: ignore[arg-type]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _write(path: Path, value: Mapping[str, Any], *, is_synced: bool = True) -> bool:
    """Replace a file at once; return whether it could be."""
    new = path.with_name(path.name + ".new")
    try:
        with new.open("w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        new.replace(path)
    except (OSError, ValueError):
        return False
    return True
