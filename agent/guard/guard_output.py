"""The guard's standard output: the work's output, passed on, and the guard's own lines between whole ones."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import threading
from typing import Callable, Mapping

MOST_LINES, LONGEST_LINE = 50, 500
_PIECE = 64 * 1024
_OUT = 1


class LastLines:
    """The newest lines of one stream, cut to size."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lines: collections.deque[str] = collections.deque(maxlen=MOST_LINES)
        self._begun = b""

    def take(self, piece: bytes) -> None:
        """Add output. Of a long line only the beginning is kept."""
        *whole, begun = piece.split(b"\n")
        if whole:
            self._add(self._begun + whole[0][:_PIECE])
            for line in whole[-MOST_LINES:] if len(whole) > MOST_LINES else whole[1:]:
                self._add(line)
            self._begun = b""
        self._begun = (self._begun + begun)[: 4 * LONGEST_LINE]

    def lines(self) -> list[str]:
        """Return the lines, the oldest first; an unfinished one is the last."""
        begun = [_text(self._begun)] if self._begun else []
        return [*self._lines, *begun][-MOST_LINES:]

    def _add(self, line: bytes) -> None:
        self._lines.append(_text(line))


def _text(line: bytes) -> str:
    text = line[: 4 * LONGEST_LINE].decode("utf-8", "replace").rstrip("\r")
    return "".join(letter if letter.isprintable() or letter == "\t" else "\ufffd" for letter in text)[:LONGEST_LINE]


class GuardOutput:
    """Writes to the guard's own streams and remembers the last lines of the work."""

    def __init__(self) -> None:
        """Write to the streams that the guard was started with."""
        self._lock = threading.Lock()
        self._is_line_open = False
        self._tail = LastLines()
        self._copy: Callable[[bytes], None] | None = None

    def copy_to(self, take: Callable[[bytes], None]) -> None:
        """Give every piece of the work's output to a function as well; it must return at once."""
        self._copy = take

    def say(self, line: str) -> None:
        """Print a line of the guard's own."""
        start = b"\n" if self._is_line_open else b""
        self._write(_OUT, start + line.encode("utf-8", "replace") + b"\n")

    def pass_on(self, streams: Mapping[int, int]) -> threading.Thread:
        """Begin to pass on the output from descriptors: {read from: write to}. Return the thread that does so."""
        thread = threading.Thread(target=self._pump, args=(dict(streams),), daemon=True, name="output")
        thread.start()
        return thread

    def last_lines(self) -> list[str]:
        """Return the last lines that the work printed."""
        with self._lock:
            return self._tail.lines()

    def _pump(self, streams: dict[int, int]) -> None:
        while streams:
            ready, _, _ = select.select(list(streams), [], [])
            for source in ready:
                piece = os.read(source, _PIECE)
                if not piece:
                    del streams[source]
                    os.close(source)
                    continue
                with self._lock:
                    self._tail.take(piece)
                if self._copy is not None:
                    self._copy(piece)
                self._write(streams[source], piece)

    def _write(self, target: int, piece: bytes) -> None:
        # A closed or full terminal is no reason to end paid work.
        with contextlib.suppress(OSError):
            rest = memoryview(piece)
            while rest:
                rest = rest[os.write(target, rest) :]
        self._is_line_open = not piece.endswith(b"\n")
