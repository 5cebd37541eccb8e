"""Time, handed in: the only file that may read the machine's clock."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What the program knows of time."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, whatever happens to the wall clock."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait until `seconds` from now have passed."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(seconds)


class SteppedClock:
    """A clock that moves only when somebody waits on it or advances it; rehearsals and tests share one with the market.

    Two tasks that wait 5 s from the same instant both end 5 s later, as on a real clock: a wait moves the clock to its
    own deadline and never beyond.
    """

    def __init__(self, start: datetime) -> None:
        self._origin = start
        self._seconds = 0.0

    def now(self) -> datetime:
        """Return the simulated wall clock, in UTC."""
        return self._origin + timedelta(seconds=self._seconds)

    def time(self) -> float:
        """Return the simulated wall clock in seconds since the epoch: the shape the simulator asks for."""
        return self._origin.timestamp() + self._seconds

    def monotonic(self) -> float:
        """Return simulated seconds since the start."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Move time forward."""
        self._seconds += seconds

    async def sleep(self, seconds: float) -> None:
        """Move time to `seconds` after this call, unless others have moved it further."""
        deadline = self._seconds + seconds
        await asyncio.sleep(0)
        self._seconds = max(self._seconds, deadline)
