"""The simulator's time: one clock that the world, the replies' dates and the slow answers share.

The only file of the simulator that reads the machine's clock.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """The clock that the simulator needs; a rehearsal passes the agent's own clock of this shape."""

    def time(self) -> float:
        """Return the simulated instant in seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` of simulated time have passed."""
        ...

    def advance(self, seconds: float) -> None:
        """Move simulated time forward."""
        ...


class ScaledClock:
    """A clock that runs `speed` times as fast as the machine's; at speed 0 only advance() moves it."""

    def __init__(self, start: float | None = None, speed: float = 1.0) -> None:
        """Start at `start` (epoch seconds; now by default)."""
        self._start = time.time() if start is None else start
        self._speed = speed
        self._origin = time.monotonic()
        self._advanced = 0.0
        self._moved = asyncio.Event()

    def time(self) -> float:
        """Return the simulated instant in seconds since the epoch."""
        running = (time.monotonic() - self._origin) * self._speed if self._speed else 0.0
        return self._start + running + self._advanced

    def advance(self, seconds: float) -> None:
        """Move simulated time forward and wake all sleepers."""
        self._advanced += seconds
        # A fresh event per move: those asleep see exactly one set(), those who look later wait for the next move.
        self._moved.set()
        self._moved = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` of simulated time have passed, by running or by being advanced."""
        deadline = self.time() + seconds
        while (left := deadline - self.time()) > 0:
            wall = left / self._speed if self._speed else None
            try:
                await asyncio.wait_for(self._moved.wait(), wall)
            except TimeoutError:
                continue
