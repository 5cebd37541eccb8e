"""The output of the work on the instance's disk, in pieces that wait for the bucket.

The waiting pieces have a bounded size, and a full disk drops output. The name of a piece is the host's time at the
guard's start and a number: no later start replaces it, and names sort in the order of the output.
"""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path
from typing import BinaryIO

LARGEST_PIECE, MOST_WAITING = 1024 * 1024, 32 * 1024 * 1024
"""Bytes of one piece, and of all that wait: past that, output is dropped until a piece is in the bucket."""
_LAST_START = 9_999_999_999
_NAME = re.compile(r"[0-9]{10}-[0-9]{6}")


class LogSpool:
    """The pieces of one disk; safe for threads."""

    def __init__(self, place: Path, started_at: float) -> None:
        """Keep pieces in a folder, where those of an earlier guard may wait."""
        self._place = place
        self._lock = threading.Lock()
        self._number = 0
        self._file: BinaryIO | None = None
        self._size = self._dropped = 0
        with contextlib.suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        left = self._left()
        # A restart within a second, or on a host whose clock was set back, must not write over what is left.
        before = max((int(file.name[:10]) for file, _ in left), default=-1)
        self._start = f"{min(max(int(started_at), before + 1, 0), _LAST_START):010d}"
        self._waiting = sum(size for _, size in left)

    def take(self, output: bytes) -> bool:
        """Keep output, or drop it; return whether a piece is full. This never fails and never waits for the bucket."""
        with self._lock:
            if self._waiting + len(output) > MOST_WAITING:
                self._dropped += len(output)
                return True
            try:
                self._write(output)
            except OSError:
                self._dropped += len(output)
            return self._size >= LARGEST_PIECE

    def close_piece(self) -> None:
        """End the present piece, so that it can go."""
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file, self._size = None, 0

    def closed(self) -> list[Path]:
        """Return the pieces that can go, the oldest first."""
        with self._lock:
            present = self._name() if self._file is not None else ""
            return [file for file, _ in self._left() if file.name != present]

    def carried(self, piece: Path) -> None:
        """Forget a piece that the bucket has."""
        with self._lock:
            with contextlib.suppress(OSError):
                piece.unlink()
            self._waiting = sum(size for _, size in self._left())

    def _write(self, output: bytes) -> None:
        if self._file is None:
            self._number += 1
            self._file = (self._place / self._name()).open("wb", buffering=0)
        note = b""
        if self._dropped:
            note = f"\ngpubid-guard: {self._dropped} bytes of output are not kept here\n".encode()
        self._file.write(note + output)
        self._dropped = 0
        self._size += len(note) + len(output)
        self._waiting += len(note) + len(output)

    def _name(self) -> str:
        return f"{self._start}-{self._number:06d}"

    def _left(self) -> list[tuple[Path, int]]:
        try:
            files = sorted(file for file in self._place.iterdir() if _NAME.fullmatch(file.name))
            return [(file, file.stat().st_size) for file in files]
        except OSError:
            return []
