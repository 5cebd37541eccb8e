"""Time, handed in: the only file that may read the machine's clock."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

CLOSE = timedelta(seconds=60)
"""Two clocks with a smaller difference show the same time."""
BELIEVED_SECONDS = 180.0
"""A market must show the same time for so long before it is believed against the machine's own clock. Assumed."""
LOST = timedelta(days=30)
"""A machine this far behind has lost its time: without a battery its clock starts years back."""


class Clock(Protocol):
    """The program's source of time."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, whatever happens to the wall clock, and in which a sleep counts."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait until `seconds` from now have passed."""
        ...


_SLEEP_COUNTS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's `CLOCK_MONOTONIC` stands still while the machine sleeps; elsewhere it goes on."""


def boottime() -> float:
    """Return seconds since the machine's start, in which its sleep counts too."""
    return time.clock_gettime(_SLEEP_COUNTS)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the wall clock, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds. Its sleep counts: meanwhile machines bill, and nobody looks."""
        return boottime()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop."""
        await asyncio.sleep(seconds)


class SteppedClock:
    """A clock that moves only when it is waited on or advanced; rehearsals and tests share one with the market.

    A wait moves the clock to its own deadline and never beyond. So two tasks that wait 5 s from the same instant both
    end 5 s later, as on a real clock.
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


class PacedClock:
    """A clock that runs `speed` times as fast as the machine's: for a rehearsal in which real processes run."""

    def __init__(self, start: datetime, speed: float) -> None:
        self.speed = speed
        self._origin = start
        self._began = time.monotonic()
        self._advanced = 0.0

    def now(self) -> datetime:
        """Return the simulated wall clock, in UTC."""
        return self._origin + timedelta(seconds=self.monotonic())

    def time(self) -> float:
        """Return the simulated wall clock in seconds since the epoch: the shape the simulator asks for."""
        return self._origin.timestamp() + self.monotonic()

    def monotonic(self) -> float:
        """Return simulated seconds since the start."""
        return (time.monotonic() - self._began) * self.speed + self._advanced

    def advance(self, seconds: float) -> None:
        """Move time forward; sleeping tasks go on sleeping."""
        self._advanced += seconds

    async def sleep(self, seconds: float) -> None:
        """Wait until so many simulated seconds have passed by running."""
        await asyncio.sleep(seconds / self.speed)


class SteadyClock:
    """A wall clock without jumps: the machine's wall clock once, carried on by monotonic seconds (rule 14).

    Elapsed time is money here: a machine's clock that jumps a day must not bill a day. `heed` compares it to a market's
    clock. While the machine's own clock agrees with the market's it is followed, small corrections and a sleep of the
    machine included. If the two differ at the start, and nothing else is known, the earlier one counts. The clock of a
    market that is ahead counts once it has shown the same time for `BELIEVED_SECONDS`. It counts at once if the machine
    must have lost its time: it is a month behind, or before a recorded instant while the market is not.
    """

    def __init__(self, machine: Clock) -> None:
        """Begin with the present time of the machine's clock."""
        self._machine = machine
        self._origin = machine.now()
        self._began = machine.monotonic()
        self._ahead: dict[str, timedelta] = {}
        self._is_set = False
        self._recorded: datetime | None = None
        self._doubted: dict[str, tuple[float, timedelta]] = {}

    def recall(self, recorded: datetime) -> None:
        """Take a recorded instant: if the machine's clock is before it, the clock or the record is wrong."""
        self._recorded = max(recorded, self._recorded or recorded)

    def now(self) -> datetime:
        """Return the steady wall clock, in UTC."""
        return self._origin + timedelta(seconds=self._machine.monotonic() - self._began)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait as the machine's clock does."""
        await self._machine.sleep(seconds)

    def wall(self) -> datetime:
        """Return the machine's own wall clock, right or wrong."""
        return self._machine.now()

    @property
    def is_set(self) -> bool:
        """Whether a market has given the time since the start."""
        return self._is_set

    def heed(self, market: str, market_time: datetime | None) -> float:
        """Return the seconds by which a market's clock is ahead of the machine's; without one, the last figure."""
        wall = self._machine.now()
        if market_time is not None:
            is_close = abs(market_time - wall) <= CLOSE
            if is_close or (not self._is_set and self._is_believed(market, market_time - wall)):
                self._origin, self._began = (wall if is_close else market_time), self._machine.monotonic()
                self._is_set = True
            self._ahead[market] = market_time - self.now()
        if market not in self._ahead:
            return 0.0
        return (self.now() + self._ahead[market] - wall).total_seconds()

    def _is_believed(self, market: str, ahead: timedelta) -> bool:
        """Return whether a market's time counts at the start: an hour ahead, believed at once, would bill an hour."""
        wall = self._machine.now()
        # A record that is ahead of the market too was made by a wrong clock, and proves nothing.
        is_before_record = self._recorded is not None and wall < self._recorded <= wall + ahead + CLOSE
        if ahead < timedelta() or ahead > LOST or is_before_record:
            return True
        since, before = self._doubted.get(market, (self._machine.monotonic(), ahead))
        if abs(ahead - before) > CLOSE:
            since, before = self._machine.monotonic(), ahead
        self._doubted[market] = since, before
        return self._machine.monotonic() - since >= BELIEVED_SECONDS
