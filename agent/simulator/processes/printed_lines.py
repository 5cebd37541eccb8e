"""The newest lines that a container printed, with their times; bounded in bytes."""

import collections

MOST_BYTES = 256 * 1024
LONGEST_LINE = 8 * 1024


class PrintedLines:
    """The newest lines. `dropped` counts those that are kept no longer, so that a line's number never changes."""

    def __init__(self) -> None:
        """Begin empty."""
        self.dropped = 0
        self._lines: collections.deque[tuple[float, str]] = collections.deque()
        self._bytes = 0
        self._begun = b""

    def take(self, piece: bytes, now: float) -> None:
        """Add output; a line without its end waits for the rest, a longer one than `LONGEST_LINE` is cut."""
        *whole, self._begun = (self._begun + piece).split(b"\n")
        while len(self._begun) > LONGEST_LINE:
            whole.append(self._begun[:LONGEST_LINE])
            self._begun = self._begun[LONGEST_LINE:]
        for line in whole:
            self._add(line[:LONGEST_LINE].removesuffix(b"\r").decode("utf-8", "replace"), now)

    def end(self, now: float) -> None:
        """Take the last line as whole: nothing more is printed."""
        if self._begun:
            self.take(b"\n", now)

    def clear(self) -> None:
        """Drop all, as for a container that starts anew."""
        self.dropped += len(self._lines)
        self._lines.clear()
        self._bytes, self._begun = 0, b""

    def lines(self) -> list[tuple[float, str]]:
        """Return time and text of each line that is kept."""
        return list(self._lines)

    def _add(self, text: str, now: float) -> None:
        self._lines.append((now, text))
        self._bytes += _size(text)
        while self._bytes > MOST_BYTES:
            _, old = self._lines.popleft()
            self._bytes -= _size(old)
            self.dropped += 1


def _size(text: str) -> int:
    """Return the bytes of a line with its end."""
    return len(text.encode()) + 1
