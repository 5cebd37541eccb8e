"""How busy the GPUs are: read once a minute beside the work, on a thread of its own, since a driver may hang."""

from __future__ import annotations

import threading
from typing import Callable

from agent.guard.acceptance import gpu_query
from agent.guard.acceptance.gpu_query import GpuAnswer, GpuQuery
from agent.guard.guard_clock import GuardClock, uptime

FIELD = "gpu_use"
EVERY_SECONDS = 60.0
LEAST_REAL_SECONDS = 1.0
"""A clock that runs fast in a rehearsal starts no more programs than one a second."""
MOST_SLOW = 3
"""After this many late answers in a row no more is asked: each leaves a program behind that hangs in the kernel."""
MOST_PERCENT = 100.0


class GpuUse:
    """Reads the use of the busiest GPU."""

    def __init__(
        self,
        query: GpuQuery,
        clock: GuardClock,
        stopping: threading.Event,
        is_working: Callable[[], bool],
        see: Callable[[float | None], None],
    ) -> None:
        """Give each reading to `see` while the work runs: per cent, or None if it is unknown."""
        self._is_working = is_working
        self._query = query
        self._clock = clock
        self._stopping = stopping
        self._see = see
        self._is_started = False

    def start(self) -> None:
        """Begin to read in a minute; a second call does nothing."""
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, daemon=True, name="gpu-use").start()

    def _run(self) -> None:
        slow = 0
        while not self._stopping.wait(max(self._clock.real(EVERY_SECONDS), LEAST_REAL_SECONDS)):
            answer = self._query.ask(uptime() + gpu_query.SECONDS, (FIELD,)) if self._is_working() else GpuAnswer("")
            self._see(busiest(answer))
            slow = slow + 1 if answer.tool == gpu_query.SLOW else 0
            if answer.tool == gpu_query.MISSING or slow >= MOST_SLOW:
                return


def busiest(answer: GpuAnswer) -> float | None:
    """Return the use of the busiest GPU in per cent; None unless every GPU has a plausible figure."""
    uses = [float(use) for gpu in answer.gpus if (use := gpu.get(FIELD)) is not None and use <= MOST_PERCENT]
    return max(uses) if uses and len(uses) == answer.count else None
