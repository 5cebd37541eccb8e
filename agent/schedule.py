"""Which job runs when. Jobs only wake; work is done by the daemon's own loop, so that a stop never cuts it in half."""

from collections.abc import Callable
from datetime import UTC, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler

TIDY_HOUR = 3
"""UTC hour in which old prices are rolled up: budget days turn at midnight, which is busy enough."""
WATCHDOG_SHARE = 3.0
"""The watchdog is fed this often within its patience: one late beat must not kill a healthy daemon."""
CYCLE_DEADLINE_POLLS = 20
"""A cycle that has not ended after so many polls is stuck: writes have deadlines of their own, far shorter."""


OPEN_PATIENCE_SECONDS = 5.0
"""How long a start waits to learn whose account a key is of; after that the cycles go on asking."""
READY_AFTER_SECONDS = 5.0
"""The service manager is told that the daemon is ready after the first cycle, or so long after it began: a market that
is silent is no start that failed, and a manager's patience is 90 seconds."""
STOP_PATIENCE_SECONDS = 5.0
"""How long a stop waits for a cycle that reads: a market that hangs would outlast a service manager's patience."""
CYCLE = "cycle"
"""The job that a reload may give another rhythm."""


def scheduler(
    poll: timedelta,
    wake: Callable[[], None],
    tidy: Callable[[], None],
    beat: Callable[[], None],
    watchdog: float | None,
) -> AsyncIOScheduler:
    """Return a scheduler, not started: a cycle each `poll`, tidying once a day, the watchdog while it watches.

    Nothing is stored: the ledger says what is due, and a missed wake is made up by the next.
    """
    made = AsyncIOScheduler(
        timezone=UTC, job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
    )
    made.add_job(wake, "interval", seconds=poll.total_seconds(), id=CYCLE)
    made.add_job(tidy, "cron", hour=TIDY_HOUR, id="tidy")
    if watchdog is not None:
        made.add_job(beat, "interval", seconds=watchdog / WATCHDOG_SHARE, id="watchdog")
    return made


def repoll(clockwork: AsyncIOScheduler, poll: timedelta) -> None:
    """Give the cycle another rhythm from now on."""
    clockwork.reschedule_job(CYCLE, trigger="interval", seconds=poll.total_seconds())
