"""One program run to its end, bounded in time and in output; whatever it does, the guard goes on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import Mapping, Sequence

from agent.guard.guard_clock import uptime
from agent.guard.reaper import Reaper, die_with_parent

MOST_KEPT = 64 * 1024
_PIECE, _TAIL = 16 * 1024, 4096
_PAUSE_SECONDS, _LAST_OUTPUT_SECONDS = 0.02, 1.0


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, negative for a signal, and the beginning and the end of its output.

    `code` is None if it did not end in time, or does not exist (`is_missing`). `was_started` is also False if the
    machine had no memory or process left for it.
    """

    code: int | None
    head: str = ""
    tail: str = ""
    is_missing: bool = False
    was_started: bool = True


class BoundedRun:
    """A program that runs. Nothing waits for it beyond its time."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str], reaper: Reaper, *, with_errors: bool = False
    ) -> None:
        """Start it; raise OSError if that fails. `with_errors` keeps its standard error too."""
        self._reaper = reaper
        self._head = b""
        self._tail = b""
        self._process = reaper.start(
            lambda: subprocess.Popen(  # noqa: S603 - a program of the image, or the operator's own
                list(words),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if with_errors else subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
                preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of the kernel, looked up before
            )
        )
        self._reading = threading.Thread(target=self._read, daemon=True, name="check")
        self._reading.start()

    def head(self) -> str:
        """Return the beginning of its output up to now."""
        return self._head.decode("utf-8", "replace")

    def wait(self, until: float, stopping: threading.Event) -> int | None:
        """Wait for its end up to a time of `uptime`, or until the guard must stop."""
        while True:
            self._reaper.reap()
            code = self._reaper.code(self._process)
            if code is not None or uptime() >= until or stopping.is_set():
                return code
            stopping.wait(_PAUSE_SECONDS)

    def ended(self, until: float, stopping: threading.Event) -> Ended:
        """Wait, then kill the rest of its group. A process that hangs in the kernel is left behind."""
        code = self.wait(until, stopping)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reading.join(_LAST_OUTPUT_SECONDS)
        self._reaper.reap()
        return Ended(code, self.head(), self._tail.decode("utf-8", "replace"))

    def _read(self) -> None:
        if self._process.stdout is None:
            return
        with contextlib.suppress(OSError, ValueError), self._process.stdout as source:
            while True:
                piece = source.read(_PIECE)
                if not piece:
                    return
                self._head += piece[: MOST_KEPT - len(self._head)]
                self._tail = (self._tail + piece)[-_TAIL:]


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    reaper: Reaper,
    until: float,
    stopping: threading.Event,
    *,
    with_errors: bool = False,
) -> Ended:
    """Run a program up to a time of `uptime`; return how it ended."""
    try:
        started = BoundedRun(words, environment, reaper, with_errors=with_errors)
    except (FileNotFoundError, NotADirectoryError):
        return Ended(None, is_missing=True, was_started=False)
    except (OSError, ValueError) as failure:
        return Ended(126, tail=str(failure), was_started=False)
    return started.ended(until, stopping)
