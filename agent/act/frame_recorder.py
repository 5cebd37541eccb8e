"""Recordings: files of frames beside the ledger, one for each day and start; past the limit the oldest are deleted.

Invariants:
1. A recording never costs a cycle. A failed write ends the recording, is logged once, and changes nothing else.
2. Each file begins with a whole frame, so that each can be read without the others.
"""

import zlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import structlog

from agent.decide import plan_recording
from agent.decide.limits.limits import Limits
from agent.decide.plan import Plan
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet

log = structlog.get_logger("gpubid.recording")

_LEVEL = 6
"""Level of zlib: half the size of level 1 for a millisecond more a frame."""


def folder_of(ledger: Path) -> Path:
    """Return the folder of a ledger's recordings."""
    return ledger.with_name(ledger.name + ".recordings")


class Recorder:
    """Records each plan of a daemon with all its inputs."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Write into `folder`, which is made; its files together stay below `most_bytes`."""
        self._folder = folder
        self._most_bytes = most_bytes
        self._file: BinaryIO | None = None
        self._day = ""
        self._last: plan_recording.Parts = {}
        self._is_over = False

    def see(
        self, fleet: Fleet, tuned: Mapping[str, Tuned], caps: Limits, faulty: frozenset[str], planned: Plan
    ) -> None:
        """Record one plan."""
        if self._is_over:
            return
        try:
            self._write(plan_recording.parts(plan_recording.framed(fleet, tuned, caps, faulty, planned)), fleet.now)
        except Exception as error:  # noqa: BLE001 - another's strategy may put anything into a decision
            self._is_over = True
            self.close()
            log.error("recording.ended", folder=str(self._folder), reason=str(error)[:200])

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, pieces: plan_recording.Parts, now: datetime) -> None:
        if self._file is None or self._day != f"{now:%Y%m%d}":
            self._begin(now)
        assert self._file is not None  # noqa: S101 - just begun
        packed = zlib.compress(plan_recording.changed(self._last, pieces), _LEVEL)
        self._file.write(len(packed).to_bytes(plan_recording.LENGTH_BYTES, "big") + packed)
        self._file.flush()
        self._last = pieces
        if self._file.tell() > self._most_bytes // 4:
            # A day that fills a quarter of the limit goes on in another file, or no file could be deleted.
            self._day = ""

    def _begin(self, now: datetime) -> None:
        self.close()
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._make_room()
        self._file = (self._folder / f"{now:%Y%m%dT%H%M%S.%fZ}{plan_recording.SUFFIX}").open("xb")
        self._file.write(plan_recording.MAGIC)
        self._day, self._last = f"{now:%Y%m%d}", {}

    def _make_room(self) -> None:
        """Delete the oldest files until a quarter of the limit is free."""
        files = sorted(self._folder.glob(f"*{plan_recording.SUFFIX}"))
        sizes = {file: file.stat().st_size for file in files}
        for file in files:
            if sum(sizes.values()) <= self._most_bytes * 3 // 4:
                return
            file.unlink()
            del sizes[file]
