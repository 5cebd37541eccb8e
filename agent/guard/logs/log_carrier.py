"""Carries the work's output into the bucket, beside the work: in compressed pieces, at most one every two minutes.

1. The work never waits for it: output that finds no room is dropped, and the log says how much.
2. A piece stays on the disk until the bucket has it; the next guard on this disk carries what is left.
3. At most `MOST_CARRIED` bytes of output go into the bucket from one start.
"""

from __future__ import annotations

import contextlib
import gzip
import threading
from pathlib import Path

from agent.guard.bucket_notes import BucketNotes
from agent.guard.guard_clock import GuardClock
from agent.guard.guard_output import GuardOutput
from agent.guard.logs.log_spool import LARGEST_PIECE, LogSpool
from agent.guard.object_store import StoreFailed

FOLDER = "logs"
EVERY_SECONDS = 120.0
MOST_CARRIED = 1024 * 1024 * 1024
LAST_SECONDS = 10.0
"""Real seconds that an end waits for the last pieces."""


class LogCarrier:
    """Carries the log of one guard's work."""

    def __init__(self, lease: str, place: Path, notes: BucketNotes, clock: GuardClock, output: GuardOutput) -> None:
        """Carry output of the lease's work; `place` is the guard's folder on the disk."""
        self._folder = f"{FOLDER}/{lease}"
        self._notes = notes
        self._clock = clock
        self._output = output
        self._spool = LogSpool(place / FOLDER, clock.wall())
        self._woken, self._ending = threading.Event(), threading.Event()
        self._carrying = threading.Lock()
        self._carried = 0
        self._is_over = False
        output.copy_to(self._take)

    def start(self) -> None:
        """Begin to carry."""
        threading.Thread(target=self._run, daemon=True, name="logs").start()

    def soon(self) -> None:
        """Carry what there is now: the instance may end."""
        self._ending.set()
        self._woken.set()

    def finish(self) -> None:
        """Carry the rest, and wait a moment for it."""
        last = threading.Thread(target=self._carry, daemon=True, name="last logs")
        last.start()
        last.join(LAST_SECONDS)

    def _take(self, piece: bytes) -> None:
        if not self._is_over and self._spool.take(piece):
            self._woken.set()

    def _run(self) -> None:
        while not self._is_over:
            self._clock.wait(self._woken, EVERY_SECONDS)
            self._woken.clear()
            self._carry()
            if not self._ending.is_set():
                # Full pieces of a flood go at the pace of the bucket, and not faster than this.
                self._ending.wait(self._clock.real(1.0))

    def _carry(self) -> None:
        """Carry every closed piece; a bucket that is away keeps them on the disk."""
        with self._carrying:
            self._spool.close_piece()
            with contextlib.suppress(StoreFailed, OSError):
                for piece in self._spool.closed():
                    self._carry_one(piece)

    def _carry_one(self, piece: Path) -> None:
        with piece.open("rb") as file:
            content = file.read(2 * LARGEST_PIECE)
        if self._carried + len(content) > MOST_CARRIED:
            if not self._is_over:
                self._is_over = True
                self._output.say(f"gpubid-guard: {MOST_CARRIED} bytes of output are in the bucket, no more is carried")
            return
        self._notes.store.put(self._notes.key(f"{self._folder}/{piece.name}.gz"), gzip.compress(content, 6))
        self._carried += len(content)
        self._spool.carried(piece)
