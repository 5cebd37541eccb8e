"""The dispatcher: reads new events from the ledger, delivers what rules ask for, tries again, and remembers its place.

1. It runs beside the cycles and never in them: a channel that hangs delays nobody but itself. Only a daemon that ends
   for good waits for it, for some seconds.
2. The ledger has the last event that was sent. After a restart, on this machine or another, no event is left out, and a
   message that may be sent twice has the same key.
3. A message is tried again with growing pauses for a day, then it is given up with a log line.
"""

import asyncio
import contextlib
import datetime as dt
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from agent import background_tasks
from agent.clock import Clock
from agent.config.notify_settings import Notify
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.notify import digest, quiet_hours
from agent.notify.channels import Channel, UndeliveredError
from agent.notify.incidents import Incidents, Message
from agent.notify.notified_place import NotifiedPlace
from agent.systemd import CredentialError

log = structlog.get_logger("gpubid.notify")

LATER_SECONDS = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0)
GIVEN_UP_AFTER = dt.timedelta(days=1)
MOST_WAITING = 1_000
"""Of one channel. Of more, the least severe are dropped first, the oldest of those before the others."""
READ_AT_ONCE = 500
SHORTEST_PAUSE_SECONDS = 1.0
"""Of a wait for the next attempt: the wall clock may be behind the time in which the wait was measured."""


@dataclass(slots=True)
class _Parcel:
    message: Message
    since: dt.datetime
    next_at: dt.datetime
    tries: int = 0
    is_quiet: bool = False
    """Whether it waits for the end of quiet hours."""


class Dispatcher:
    """Sends notifications. Call `run` beside the daemon."""

    def __init__(
        self,
        ledger: Ledger,
        clock: Clock,
        notify: Notify,
        channels: Mapping[str, Channel],
        seen: Callable[[str, bool], None] = lambda _channel, _is_good: None,
        is_time_known: Callable[[], bool] = lambda: True,
    ) -> None:
        """Read `ledger`, deliver through `channels`, and call `seen(channel, is_delivered)` after each attempt.

        There are no quiet hours while `is_time_known()` is false.
        """
        self._ledger = ledger
        self._clock = clock
        self._notify = notify
        self._channels = channels
        self._seen = seen
        self._is_time_known = is_time_known
        self._incidents = Incidents(notify)
        self._waiting: deque[_Parcel] = deque()
        self._digest_day: dt.date | None = None
        self._read_to: int | None = None
        self._place = NotifiedPlace(ledger)
        self._wake = asyncio.Event()
        self._looks = asyncio.Lock()
        self._delivering: dict[str, asyncio.Task[None]] = {}

    def use(self, notify: Notify, channels: Mapping[str, Channel]) -> None:
        """Use other rules and channels from now on; messages for a removed channel are dropped."""
        self._notify = notify
        self._incidents.use(notify)
        self._channels = channels
        self._waiting = deque(each for each in self._waiting if each.message.channel in channels)
        # What waits for the end of the old quiet hours is judged by the new ones.
        quiet = [each for each in self._waiting if each.is_quiet]
        self._waiting = deque(each for each in self._waiting if not each.is_quiet)
        self._put([each.message for each in quiet], self._clock.now())

    @property
    def is_begun(self) -> bool:
        """Whether it knows at which event to begin."""
        return self._read_to is not None

    def wake(self) -> None:
        """Look for new events soon."""
        self._wake.set()

    async def run(self) -> None:
        """Deliver until cancelled; the events of the first cycle are already new."""
        try:
            await self._begin()
        except LedgerError as error:
            log.warning("notify.unread", code=error.code.value, reason=error.sentence)
        try:
            while True:
                await self._until_woken()
                try:
                    await self._look()
                    await self._keep_place()
                except Exception:
                    # Nobody waits for this task: without it every later message would be missing, unseen.
                    log.exception("notify.failed")
        finally:
            await background_tasks.end(self._delivering)

    async def _until_woken(self) -> None:
        """Wait until somebody wakes it or the next attempt is due: while no cycle ends, nobody else does."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._seconds_to_attempt()):
                await self._wake.wait()
        self._wake.clear()

    def _seconds_to_attempt(self) -> float | None:
        """Return the seconds until a message is due on a channel that delivers nothing now, or None without one."""
        free = {name for name in self._channels if name not in self._delivering or self._delivering[name].done()}
        due = [each.next_at for each in self._waiting if each.message.channel in free]
        return max((min(due) - self._clock.now()).total_seconds(), SHORTEST_PAUSE_SECONDS) if due else None

    async def finish(self, patience: float) -> None:
        """Deliver what is due, for at most `patience` seconds, before the daemon ends for good.

        A later start sends what was not delivered.
        """
        try:
            async with asyncio.timeout(patience):
                await self.round()
                # A channel that was busy with an earlier message is free now.
                while any(self._due(name) for name in self._channels):
                    await self.round()
        except TimeoutError:
            log.warning("notify.unfinished", reason="a channel did not answer before the daemon ended")
        except Exception:
            # The daemon ends for the reason that it has, not for a defect here.
            log.exception("notify.failed")

    async def round(self) -> None:
        """Read new events, and try due messages; no error of the ledger or of a channel reaches the caller."""
        await self._look()
        await background_tasks.settle(self._delivering)
        await self._keep_place()

    async def _look(self) -> None:
        """Read new events, and begin to deliver to each channel that is not delivering and has a due message."""
        try:
            async with self._looks:
                await self._collect()
        except LedgerError as error:
            log.warning("notify.unread", code=error.code.value, reason=error.sentence)
        self._end_quiet(self._clock.now())
        self._delivering = {name: task for name, task in self._delivering.items() if not task.done()}
        for name in self._channels.keys() - self._delivering.keys():
            if self._due(name):
                self._delivering[name] = asyncio.create_task(self._deliver_due(name))
                # The place is kept once it has ended, and what became due meanwhile is tried.
                self._delivering[name].add_done_callback(lambda _: self.wake())

    async def _keep_place(self) -> None:
        if self._read_to is not None:
            try:
                await self._place.keep(self._last_sent(self._read_to))
            except LedgerError as error:
                log.warning("notify.unkept", code=error.code.value, reason=error.sentence)

    async def _begin(self) -> int:
        """Return the event to read after."""
        if self._read_to is None:
            self._read_to = await self._place.begin()
        return self._read_to

    async def _collect(self) -> None:
        now = self._clock.now()
        reader = await self._ledger.reader()
        events = await reader.events_after(await self._begin(), READ_AT_ONCE)
        self._put(self._incidents.take(events, now), now)
        if events:
            self._read_to = events[-1].event_id or self._read_to
        if len(events) == READ_AT_ONCE:
            self.wake()
        await self._digest(now)

    def _last_sent(self, read_to: int) -> int:
        """Return the last event before any waiting message: waiting messages are read again after a restart."""
        waiting = [each.message.events[0].event_id or 0 for each in self._waiting if each.message.events]
        return min([read_to, *(first - 1 for first in (*waiting, *self._incidents.uncounted))])

    async def _digest(self, now: dt.datetime) -> None:
        at, today = self._notify.digest_at, now.date()
        if at is None or now.time() < at or self._digest_day == today:
            return
        is_first_look, self._digest_day = self._digest_day is None, today
        if is_first_look and (now - dt.datetime.combine(today, at, dt.UTC)) > dt.timedelta(hours=1):
            # Started long after the hour: today's digest was sent before, or its time is over.
            return
        message = await digest.digest(await self._ledger.reader(), now)
        self._put([Message(f"{name}/digest/{today}", name, message.severity, message.title, message.text, now)
                   for name in self._channels if name != "hook"], now)  # fmt: skip

    def _put(self, messages: Sequence[Message], now: dt.datetime) -> None:
        self._waiting.extend(self._parcel(message, now) for message in messages)
        for channel in {message.channel for message in messages}:
            mine = [each for each in self._waiting if each.message.channel == channel]
            mine.sort(key=lambda each: each.message.severity)
            for lost in mine[: max(len(mine) - MOST_WAITING, 0)]:
                self._drop(lost)
                log.error("notify.lost", channel=channel, title=lost.message.title, reason="too many wait")

    def _parcel(self, message: Message, now: dt.datetime) -> _Parcel:
        until = quiet_hours.until(message, self._notify, now) if self._is_time_known() else None
        return _Parcel(message, now, now) if until is None else _Parcel(message, until, until, is_quiet=True)

    def _end_quiet(self, now: dt.datetime) -> None:
        """Combine the messages that waited for the end of quiet hours into one for each channel."""
        quiet = [each for each in self._waiting if each.is_quiet]
        over = [each for each in quiet if each.next_at <= now or not self._is_time_known()]
        if not over:
            return
        for each in over:
            self._drop(each)
        for channel in dict.fromkeys(each.message.channel for each in over):
            mine = [each.message for each in over if each.message.channel == channel]
            self._waiting.append(_Parcel(quiet_hours.combined(mine), now, now))

    def _due(self, channel: str) -> list[_Parcel]:
        now = self._clock.now()
        return [each for each in self._waiting if each.message.channel == channel and each.next_at <= now]

    async def _deliver_due(self, channel: str) -> None:
        for parcel in self._due(channel):
            if self._waits(parcel):
                await self._try(parcel)

    def _waits(self, parcel: _Parcel) -> bool:
        """Return whether a message still waits: a reload during a delivery may have dropped it with its channel."""
        return any(each is parcel for each in self._waiting)

    def _drop(self, parcel: _Parcel) -> None:
        self._waiting = deque(each for each in self._waiting if each is not parcel)

    async def _try(self, parcel: _Parcel) -> None:
        message, now = parcel.message, self._clock.now()
        try:
            await self._channels[message.channel].deliver(message)
        except (UndeliveredError, CredentialError) as error:
            self._seen(message.channel, False)
            self._put_off(parcel, now, str(error))
        except Exception:
            # Foreign services fail in their own ways; no message may end the dispatcher.
            self._seen(message.channel, False)
            log.exception("notify.failed", channel=message.channel)
            self._put_off(parcel, now, "a defect of the channel")
        else:
            self._seen(message.channel, True)
            self._drop(parcel)

    def _put_off(self, parcel: _Parcel, now: dt.datetime, why: str) -> None:
        if not self._waits(parcel):
            return
        if parcel.tries == 0:
            log.warning("notify.undelivered", channel=parcel.message.channel, title=parcel.message.title, reason=why)
        if now - parcel.since >= GIVEN_UP_AFTER:
            self._drop(parcel)
            log.error("notify.lost", channel=parcel.message.channel, title=parcel.message.title, reason=why)
            return
        parcel.next_at = now + dt.timedelta(seconds=LATER_SECONDS[min(parcel.tries, len(LATER_SECONDS) - 1)])
        parcel.tries += 1
