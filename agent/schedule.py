"""Times of jobs. A job only wakes the daemon's own loop, which does the work, so a stop never cuts it in half."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler

TIDY_HOUR = 3
"""UTC hour in which old prices are rolled up; not at midnight, when the budget days turn."""
WATCHDOG_SHARE = 3.0
"""The watchdog is fed this many times within its patience: one late beat must not kill a healthy daemon."""
CYCLE_DEADLINE_POLLS = 20
"""A cycle that has not ended after this many polls is stuck: writes have far shorter deadlines of their own."""


OPEN_PATIENCE_SECONDS = 5.0
"""How long a start waits for the account of a key; after that the cycles go on asking."""
OPENING_SECONDS = 900.0
"""How long a standby that leads now may take to open the ledger and to bring its tables up to date. A start has as long
(`TimeoutStartSec` of the unit); a standby has told its service manager before that it is ready."""
READY_AFTER_SECONDS = 5.0
"""The service manager hears that the daemon is ready after the first cycle, or so long after it began. A silent market
is no failed start, and a manager's patience is 90 seconds."""
STOP_PATIENCE_SECONDS = 5.0
"""How long a stop waits for a cycle that reads: a market that hangs would outlast a service manager's patience."""


class Pulse:
    """Beats in a fixed interval of the loop's monotonic time.

    A scheduler on the wall clock would wait a day when that is set back a day, and nothing would be watched then.
    """

    def __init__(self, beat: Callable[[], object], every: float) -> None:
        """Call `beat` each `every` seconds, from `start` on."""
        self._beat = beat
        self._every = every
        self._next: asyncio.TimerHandle | None = None

    def start(self, every: float | None = None) -> None:
        """Begin, or begin again with another interval."""
        self.stop()
        self._every = every or self._every
        self._wait()

    def stop(self) -> None:
        """Stop beating."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _wait(self) -> None:
        self._next = asyncio.get_running_loop().call_later(self._every, self._go)

    def _go(self) -> None:
        self._wait()
        self._beat()


@contextlib.contextmanager
def opening(beat: Callable[[], object], watchdog: float | None) -> Iterator[None]:
    """Feed the watchdog of so many seconds while a daemon opens its ledger, at most `OPENING_SECONDS`."""
    if watchdog is None:
        yield
        return
    pulse = Pulse(beat, watchdog / WATCHDOG_SHARE)
    pulse.start()
    end = asyncio.get_running_loop().call_later(OPENING_SECONDS, pulse.stop)
    try:
        yield
    finally:
        end.cancel()
        pulse.stop()


class Clockwork:
    """Starts a cycle each poll, feeds the watchdog if there is one, and tidies once a day by the wall clock.

    Nothing is stored: the ledger says what is due, and a missed wake is made up by the next.
    """

    def __init__(
        self,
        poll: timedelta,
        wake: Callable[[], None],
        tidy: Callable[[], None],
        beat: Callable[[], None],
        watchdog: float | None,
    ) -> None:
        """Start nothing yet."""
        self._cycle = Pulse(wake, poll.total_seconds())
        self._watchdog = Pulse(beat, watchdog / WATCHDOG_SHARE) if watchdog is not None else None
        self._daily = AsyncIOScheduler(timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": None})
        self._daily.add_job(tidy, "cron", hour=TIDY_HOUR)

    def start(self) -> None:
        """Begin."""
        self._cycle.start()
        if self._watchdog is not None:
            self._watchdog.start()
        self._daily.start()

    def shutdown(self) -> None:
        """Stop all of them."""
        self._cycle.stop()
        if self._watchdog is not None:
            self._watchdog.stop()
        self._daily.shutdown(wait=False)

    def repoll(self, poll: timedelta) -> None:
        """Change the interval of the cycles from now on."""
        self._cycle.start(poll.total_seconds())
