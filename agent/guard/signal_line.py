"""Signals to the guard, taken one by one by its main thread."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import signal
import threading

STOPS = frozenset({signal.SIGTERM, signal.SIGINT})
_FORWARDED = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)


class SignalLine:
    """The signals that have come. `stopping` is set by the first one that asks for the end."""

    def __init__(self) -> None:
        """Take all signals from now on."""
        self.stopping = threading.Event()
        self._numbers: collections.deque[int] = collections.deque()
        self._woken, wakes = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in (*STOPS, *_FORWARDED, signal.SIGCHLD):
            signal.signal(number, self._take)

    def wait(self, real_seconds: float) -> None:
        """Wait for a signal, a dead process, or for a time."""
        ready, _, _ = select.select([self._woken], [], [], real_seconds)
        if ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4_096)

    def taken(self) -> list[int]:
        """Return the signals that came since the last call; a dead process is none of them."""
        numbers = []
        while self._numbers:
            numbers.append(self._numbers.popleft())
        return numbers

    def _take(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self._numbers.append(number)
        if number in STOPS:
            self.stopping.set()
