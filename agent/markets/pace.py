"""When a call may leave: an interval for each endpoint, penalties of the market, and a daily ration of rows.

Invariants:
1. A call whose lane is free leaves at once, without a turn of the event loop.
2. In a lane that is waited for, urgent calls (release, pause) leave before all others.
3. A lane closed for longer than our patience raises `Throttled` instead of waiting; nothing has been sent then.
4. One answer closes a lane for at most the lane's `longest`: 60 s, unless the lane may wait a day.
5. An urgent call obeys only refusals of that same call (its door), not those of other calls in the lane. So an instance
   that cannot be ended now does not keep the others billing.
"""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agent import clock as clocks
from agent.markets import market_errors

PATIENCE_SECONDS = 10.0
"""Wait at most this long on a closed lane; after that `Throttled` lets the caller plan something else."""

DAILY_ROWS = 9_000
"""Rows that we allow ourselves a day: under half of the vendor's 20,000, since a person may use the same key."""

LONGEST_SILENCE = timedelta(seconds=60)
"""The longest time for which one answer may prevent us from listing, pausing or releasing (rule 20)."""

LONGEST_PENALTY = timedelta(hours=25)
"""The same for searches and bills, whose quotas are by the day; a larger figure is a mistake."""

_TICK = 1e-6
"""Seconds by which a wait may end early, because sums of floats are inexact."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The rhythm of one endpoint: at most `burst` calls in any `interval` seconds."""

    interval: float
    burst: int = 1
    penalty: float = 5.0
    """Seconds to wait after a refusal that names no time."""
    longest: timedelta = LONGEST_SILENCE
    """The longest wait that any refusal may cause."""


UNPACED = Lane(0.0)


@dataclass(slots=True)
class _Queue:
    lane: Lane
    closed_until: float = -math.inf
    left_at: deque[float] = field(default_factory=deque)
    waiting: list[tuple[bool, int]] = field(default_factory=list)
    doors: dict[str, float] = field(default_factory=dict)

    def opens_at(self, door: str) -> float:
        """Return the monotonic second at which the next call may leave; `door` names an urgent one."""
        closed_until = self.closed_for(door)
        if len(self.left_at) < self.lane.burst:
            return closed_until
        return max(self.left_at[0] + self.lane.interval, closed_until)

    def closed_for(self, door: str) -> float:
        """Return the monotonic second until which the market refuses a call; an urgent call obeys only its own door."""
        return self.doors.get(door, -math.inf) if door else self.closed_until

    def close(self, door: str, until: float, now: float) -> None:
        """Close the lane, and the door of the urgent call that was refused."""
        self.closed_until = max(self.closed_until, until)
        self.doors = {key: closed for key, closed in self.doors.items() if closed > now}
        if door:
            self.doors[door] = max(self.doors.get(door, until), until)

    def takes_at(self, calls: int) -> float:
        """Return the monotonic second from which so many calls leave at once; refusals of the market do not count."""
        before = min(calls, self.lane.burst) + len(self.left_at) - self.lane.burst
        return -math.inf if before <= 0 else self.left_at[before - 1] + self.lane.interval

    def leave(self, now: float) -> None:
        """Book one call at `now`."""
        if len(self.left_at) >= self.lane.burst:
            self.left_at.popleft()
        self.left_at.append(now)


class Pace:
    """The lanes of one market."""

    def __init__(self, clock: clocks.Clock, lanes: Mapping[str, Lane], patience: float = PATIENCE_SECONDS) -> None:
        self._clock = clock
        self._queues = {name: _Queue(lane) for name, lane in lanes.items()}
        self._patience = patience
        self._tickets = itertools.count()

    async def turn(self, lane: str, *, door: str = "") -> None:
        """Return when a call may leave on this lane; `door` names an urgent call, the same each time it is tried.

        Raises:
            Throttled: the market closed the lane, or the door of an urgent call, for longer than our patience.
        """
        queue = self._queue(lane)
        self._refuse_if_closed(lane, queue, door)
        if not queue.waiting and queue.opens_at(door) <= self._clock.monotonic() + _TICK:
            queue.leave(self._clock.monotonic())
            return
        ticket = (not door, next(self._tickets))
        heapq.heappush(queue.waiting, ticket)
        try:
            await self._wait(lane, queue, ticket, door)
        finally:
            queue.waiting.remove(ticket)
            heapq.heapify(queue.waiting)
        queue.leave(self._clock.monotonic())

    def delay(self, lane: str, calls: int) -> float:
        """Return the seconds until so many calls leave on this lane without a wait, as far as its rhythm goes."""
        return max(self._queue(lane).takes_at(calls) - self._clock.monotonic(), 0.0)

    def close(self, lane: str, until: datetime | None, *, door: str = "") -> datetime:
        """Close a lane until the market's instant, or for its penalty if it named none; return until when.

        `door` names the urgent call that was refused.
        """
        queue = self._queue(lane)
        now, monotonic = self._clock.now(), self._clock.monotonic()
        wanted = until if until is not None else now + timedelta(seconds=queue.lane.penalty)
        wanted = min(max(wanted, now), now + queue.lane.longest)
        queue.close(door, monotonic + (wanted - now).total_seconds(), monotonic)
        return wanted

    async def _wait(self, lane: str, queue: _Queue, ticket: tuple[bool, int], door: str) -> None:
        while True:
            seconds = queue.opens_at(door) - self._clock.monotonic()
            if seconds <= _TICK and queue.waiting[0] == ticket:
                return
            # The first call in the queue wakes at the same instant; it needs one turn of the loop.
            await self._clock.sleep(max(seconds, 0.0))
            self._refuse_if_closed(lane, queue, door)

    def _refuse_if_closed(self, lane: str, queue: _Queue, door: str) -> None:
        seconds = queue.closed_for(door) - self._clock.monotonic()
        if seconds > self._patience:
            until = self._clock.now() + timedelta(seconds=seconds)
            raise market_errors.Throttled(
                f"The market closed {lane!r} until {until:%Y-%m-%d %H:%M:%S} UTC; wait.", until
            )

    def _queue(self, lane: str) -> _Queue:
        return self._queues.setdefault(lane, _Queue(UNPACED))


class RowBudget:
    """The search rows that we may still use today: markets ration returned rows by key and UTC day."""

    def __init__(self, clock: clocks.Clock, budget: int = DAILY_ROWS) -> None:
        self._clock = clock
        self._budget = budget
        self._day = clock.now().astimezone(UTC).date()
        self._rows = 0
        self._spent_until: datetime | None = None

    @property
    def rows_today(self) -> int:
        """Rows the market returned to us since 00:00 UTC."""
        self._turn_day()
        return self._rows

    @property
    def budget(self) -> int:
        """Rows we allow ourselves a day."""
        return self._budget

    def grant(self, wanted: int, least: int = 1) -> int:
        """Return how many of `wanted` rows a search may use, never fewer than `least`.

        Raises:
            Throttled: fewer are left today, or the market itself said so.
        """
        self._turn_day()
        if self._spent_until is not None and self._clock.now() < self._spent_until:
            raise market_errors.Throttled(
                "The market's daily quota of search rows is used up; wait.", self._spent_until
            )
        left = self._budget - self._rows
        if left < least:
            until = self.midnight()
            raise market_errors.Throttled(
                f"Our own ration of {self._budget} search rows a day is used up; wait.", until
            )
        return min(wanted, left)

    def count(self, rows: int) -> None:
        """Count rows that a search returned."""
        self._turn_day()
        self._rows += rows

    def spend_all(self, until: datetime) -> None:
        """Allow no search before `until`: the market's quota is used up; a new one begins within a day."""
        self._spent_until = min(until, self._clock.now() + LONGEST_PENALTY)

    def midnight(self) -> datetime:
        """Return the next 00:00 UTC, when quotas begin again."""
        today = self._clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return today + timedelta(days=1)

    def _turn_day(self) -> None:
        today = self._clock.now().astimezone(UTC).date()
        if today != self._day:
            self._day, self._rows = today, 0
