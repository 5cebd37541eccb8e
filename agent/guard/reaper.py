"""Reaps every process that dies below the guard, as the first process of a container must.

It adopts orphans of the work also where the guard is not the first process. Reaping takes exit codes away from Python's
own waiting, so this module keeps those of the processes that the guard started.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from typing import Callable

_SET_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36
PAUSE_SECONDS = 0.02


def _kernel() -> Callable[..., int] | None:
    try:
        return ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None


_PRCTL = _kernel()


def die_with_parent() -> None:
    """Let the kernel kill the calling process when the guard dies: work must not go on without its checkpoints."""
    if _PRCTL is not None:
        _PRCTL(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


class Reaper:
    """Keeps the exit codes of the guard's own children, and drops those of other processes."""

    def __init__(self) -> None:
        """Adopt orphans from now on, where the kernel can."""
        if _PRCTL is not None:
            _PRCTL(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._lock = threading.Lock()
        self._codes: dict[int, int | None] = {}

    def start(self, begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Start a process whose exit code is kept."""
        with self._lock:
            process = begin()
            self._codes[process.pid] = None
        return process

    def reap(self) -> None:
        """Reap every dead child."""
        with self._lock, contextlib.suppress(ChildProcessError):
            while True:
                number, status = os.waitpid(-1, os.WNOHANG)
                if number == 0:
                    return
                if number in self._codes:
                    self._codes[number] = _code(status)

    def code(self, process: subprocess.Popen[bytes]) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        return self._codes.get(process.pid)

    def wait(self, process: subprocess.Popen[bytes], seconds: float) -> int | None:
        """Wait at most `seconds` for a process to end. Return its exit code, or None if it still runs."""
        left = seconds
        while left > 0 and self.code(process) is None:
            self.reap()
            threading.Event().wait(PAUSE_SECONDS)
            left -= PAUSE_SECONDS
        code = self.code(process)
        if code is not None:
            process.returncode = code
        return code


def _code(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
