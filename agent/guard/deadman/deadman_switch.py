"""Counts for how long the daemon has been silent, and says when that is too long. Time is handed in.

1. Only time in which the bucket answers counts: the time between two answers, 60 seconds at most.
2. A new version of the daemon's note begins the count again. A note that is missing or cannot be read changes nothing.
3. A daemon that announced an absence has that long, from the moment at which its note was first seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping

LONGEST_GAP_SECONDS = 60.0
MOST_ABSENT_SECONDS = 30 * 86_400.0
MOST_WRITTEN = 2**33
"""The daemon believes no higher number in the note of a switch that fired."""
_MOST_SILENT_SECONDS = 1e12
_LONGEST_TAG = 200


@dataclass(frozen=True)
class SignOfLife:
    """A version of the daemon's note: its tag, its number, and for how many seconds the daemon said to be away."""

    tag: str
    written: int
    absent_seconds: float

    @property
    def version(self) -> tuple[str, int]:
        """Return a value that differs in any two versions."""
        return self.tag, self.written


def read_sign(note: Mapping[str, Any], tag: str) -> SignOfLife | None:
    """Return the sign in a note, or None if it cannot be read. An absence out of its bounds is brought into them."""
    written = note.get("written")
    if isinstance(written, bool) or not isinstance(written, int) or not 0 <= written <= MOST_WRITTEN:
        return None
    return SignOfLife(tag[:_LONGEST_TAG], written, _seconds(note.get("absent_seconds"), MOST_ABSENT_SECONDS))


class DeadmanSwitch:
    """The count of one run on one disk."""

    def __init__(self, after_seconds: float, left: object = None) -> None:
        """Fire after a time; go on with the count that an earlier guard on this disk left."""
        facts = left if isinstance(left, dict) else {}
        tag = facts.get("tag")
        self._after = after_seconds
        self._sign = read_sign(facts, tag) if isinstance(tag, str) else None
        self._answered: float | None = None
        self.silent_seconds = _seconds(facts.get("silent_seconds"), _MOST_SILENT_SECONDS)

    @property
    def written(self) -> int | None:
        """Return the number of the last note that was read, on this disk."""
        return self._sign.written if self._sign is not None else None

    @property
    def is_due(self) -> bool:
        """Return whether the silence has lasted too long."""
        absent = self._sign.absent_seconds if self._sign is not None else 0.0
        return self.silent_seconds >= max(self._after, absent)

    def answered(self, now: float, sign: SignOfLife | None) -> None:
        """Take an answer of the bucket, at a time of the guard's clock; None means one without a readable note."""
        if self._answered is not None:
            self.silent_seconds += min(max(now - self._answered, 0.0), LONGEST_GAP_SECONDS)
        self._answered = now
        if sign is not None and (self._sign is None or sign.version != self._sign.version):
            self._sign = sign
            self.silent_seconds = 0.0

    def facts(self) -> dict[str, Any]:
        """Return the facts that the disk keeps."""
        facts: dict[str, Any] = {"silent_seconds": round(self.silent_seconds, 3)}
        if self._sign is not None:
            facts.update(tag=self._sign.tag, written=self._sign.written, absent_seconds=self._sign.absent_seconds)
        return facts


def _seconds(value: object, most: float) -> float:
    """Return a number between 0 and `most`; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:  # noqa: PLR0124 - NaN
        return 0.0
    return float(min(max(value, 0.0), most))
