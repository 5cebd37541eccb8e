"""Who may call now: a minimum interval for each endpoint, penalties the market imposed, and a day's ration of rows.

Invariants:
1. A call whose lane is free leaves at once, without a turn of the event loop.
2. In a lane that is waited for, urgent calls (release, pause) leave before all others.
3. A lane closed for longer than our patience raises `Throttled` instead of waiting; nothing has been sent then.
"""

import heapq
import itertools
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from agent import clock as clocks
from agent.markets import errors

PATIENCE_SECONDS = 10.0
"""A caller would rather hear `Throttled` and plan something else than wait longer than this on a closed lane."""

DAILY_ROWS = 9_000
"""Rows we allow ourselves a day; under half of the vendor's 20,000, since a person may search with the same key."""

LONGEST_PENALTY = timedelta(hours=25)
"""No market closes for longer than a day; a larger figure is a mistake that would stop us for good."""

_TICK = 1e-6
"""Seconds by which a wait may end early because sums of floats are inexact."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The rhythm of one endpoint: at most `burst` calls in any `interval` seconds.

    `penalty` is how many seconds to stay away after a refusal that names no time.
    """

    interval: float
    burst: int = 1
    penalty: float = 5.0


UNPACED = Lane(0.0)


@dataclass(slots=True)
class _Queue:
    lane: Lane
    closed_until: float = -math.inf
    left_at: deque[float] = field(default_factory=deque)
    waiting: list[tuple[bool, int]] = field(default_factory=list)

    def opens_at(self) -> float:
        """Return the monotonic second at which the next call may leave."""
        if len(self.left_at) < self.lane.burst:
            return self.closed_until
        return max(self.left_at[0] + self.lane.interval, self.closed_until)

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

    async def turn(self, lane: str, *, is_urgent: bool = False) -> None:
        """Return when a call may leave on this lane.

        Raises:
            Throttled: the market closed the lane for longer than our patience.
        """
        queue = self._queue(lane)
        self._refuse_if_closed(lane, queue)
        if not queue.waiting and queue.opens_at() <= self._clock.monotonic() + _TICK:
            queue.leave(self._clock.monotonic())
            return
        ticket = (not is_urgent, next(self._tickets))
        heapq.heappush(queue.waiting, ticket)
        try:
            await self._wait(lane, queue, ticket)
        finally:
            queue.waiting.remove(ticket)
            heapq.heapify(queue.waiting)
        queue.leave(self._clock.monotonic())

    def close(self, lane: str, until: datetime | None) -> datetime:
        """Keep a lane closed until the market's word, or for its penalty where there is none; return until when."""
        queue = self._queue(lane)
        now = self._clock.now()
        wanted = until if until is not None else now + timedelta(seconds=queue.lane.penalty)
        wanted = min(max(wanted, now), now + LONGEST_PENALTY)
        queue.closed_until = max(queue.closed_until, self._clock.monotonic() + (wanted - now).total_seconds())
        return wanted

    def seconds_closed(self, lane: str) -> float:
        """Return for how many more seconds the market keeps a lane closed, 0 when it is open."""
        return max(0.0, self._queue(lane).closed_until - self._clock.monotonic())

    async def _wait(self, lane: str, queue: _Queue, ticket: tuple[bool, int]) -> None:
        while True:
            seconds = queue.opens_at() - self._clock.monotonic()
            if seconds <= _TICK and queue.waiting[0] == ticket:
                return
            # The head of the queue wakes at the same instant as we do; it only needs one turn of the loop.
            await self._clock.sleep(max(seconds, 0.0))
            self._refuse_if_closed(lane, queue)

    def _refuse_if_closed(self, lane: str, queue: _Queue) -> None:
        seconds = queue.closed_until - self._clock.monotonic()
        if seconds > self._patience:
            until = self._clock.now() + timedelta(seconds=seconds)
            raise errors.Throttled(f"The market closed {lane!r} until {until:%Y-%m-%d %H:%M:%S} UTC; wait.", until)

    def _queue(self, lane: str) -> _Queue:
        return self._queues.setdefault(lane, _Queue(UNPACED))


class RowBudget:
    """How many search rows we may still ask for today: markets ration returned rows by key and UTC day."""

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
        """Return how many of `wanted` rows may be asked for, never fewer than `least`.

        Raises:
            Throttled: fewer are left today, or the market itself said so.
        """
        self._turn_day()
        if self._spent_until is not None and self._clock.now() < self._spent_until:
            raise errors.Throttled("The market's daily quota of search rows is used up; wait.", self._spent_until)
        left = self._budget - self._rows
        if left < least:
            until = self.midnight()
            raise errors.Throttled(f"Our own ration of {self._budget} search rows a day is used up; wait.", until)
        return min(wanted, left)

    def count(self, rows: int) -> None:
        """Book rows that a search returned."""
        self._turn_day()
        self._rows += rows

    def spend_all(self, until: datetime) -> None:
        """Ask for nothing before `until`: the market says that its quota is used up."""
        self._spent_until = until

    def midnight(self) -> datetime:
        """Return the next 00:00 UTC, when quotas begin again."""
        today = self._clock.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return today + timedelta(days=1)

    def _turn_day(self) -> None:
        today = self._clock.now().astimezone(UTC).date()
        if today != self._day:
            self._day, self._rows = today, 0
