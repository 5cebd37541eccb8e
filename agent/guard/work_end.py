"""The end of the work, and its meaning."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Collection, Sequence

from agent.guard.bucket_notes import encoded

VERSION = 1
MOST_BYTES = 60_000
"""The daemon and other guards read a note of up to 64 kB."""


@dataclass(frozen=True)
class WorkEnd:
    """The exit code of the command, negative for a signal.

    `was_stopped`: the end was ordered. `was_asked`: the guard has asked the command for a checkpoint, by SIGUSR1.
    """

    code: int
    was_stopped: bool
    was_asked: bool = False

    @property
    def is_by_request(self) -> bool:
        """Return whether the guard's own signal ended it, as it may in the last moment of a program that ends."""
        by_signal = self.code == -signal.SIGUSR1 or self.code == 128 + signal.SIGUSR1
        return self.was_asked and not self.was_stopped and by_signal

    def is_done(self, done_codes: Collection[int]) -> bool:
        """Return whether the work is finished for good. A command that ends on an order is not."""
        return not self.was_stopped and self.code in done_codes

    @property
    def exit_code(self) -> int:
        """Return the exit code as a shell gives it: 128 and the signal's number for a signal."""
        return 128 - self.code if self.code < 0 else self.code

    def note(
        self, lease: str, done_codes: Collection[int], manifest: str | None, last_lines: Sequence[str]
    ) -> dict[str, Any]:
        """Return the note of this end, with as many of the last lines as its size lets it have."""
        note: dict[str, Any] = {
            "version": VERSION,
            "lease": lease,
            "code": self.code if self.code >= 0 else None,
            "signal": -self.code if self.code < 0 else None,
            "done": self.is_done(done_codes),
            "manifest": manifest,
            "last_lines": list(last_lines),
        }
        while len(encoded(note)) > MOST_BYTES and note["last_lines"]:
            note["last_lines"] = note["last_lines"][1:]
        return note

    def sentence(self) -> str:
        """Return it as a sentence for a person."""
        if self.code >= 0:
            return f"the command ended with code {self.code}"
        try:
            name = signal.Signals(-self.code).name
        except ValueError:
            name = str(-self.code)
        return f"the command was ended by signal {name}"
