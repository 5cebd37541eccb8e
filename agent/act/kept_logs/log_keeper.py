"""Reads the last output of a container at each loss, hold and end, beside the cycles, and keeps it beside the ledger.

Invariants:
1. Nothing waits for a log: no cycle, no release, no kill, no hard cap.
2. At most `MOST_AT_ONCE` logs are read at a time, `MOST_IN_HOUR` in any hour, and `MOST_TRIES` for one moment.
3. If a log cannot be read, its header and our log say so. That is no error of the cycle. A market that keeps no logs is
   not asked.
4. The losses of a lease are derived again in every cycle from the ledger; the kept files show which logs were read.
5. No key of ours is kept: whatever this process has read as a key is removed.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import structlog

from agent import background_tasks
from agent.act.kept_logs import kept_log, log_moments
from agent.act.kept_logs.kept_log import KeptLog
from agent.act.kept_logs.log_moments import Moment
from agent.clock import Clock
from agent.domain.record.hold import OperatorHold, Word, of_lease, of_slot, of_workload
from agent.domain.record.lease import Lease, LeaseState
from agent.markets import market_errors, port, registered_markets

log = structlog.get_logger("gpubid.logs")

MOST_AT_ONCE = 4
MOST_IN_HOUR = 120
"""Each request makes the market write a file."""
MOST_TRIES = 3
TRY_SECONDS = 60.0
READ_SECONDS = 30.0
CLOSE_SECONDS = 1.0
LINES = 1_000
REFRESH = timedelta(minutes=30)
"""The time between two readings of a long run's log: a host that vanishes takes the unread lines along.

These readings use at most half of an hour's requests.
"""
JUST_BEFORE = timedelta(seconds=10)
"""A log that was read at most this long before a release counts as its last one."""


class Outside(Protocol):
    """The machine's clock, and the removal of our keys from a text."""

    @property
    def clock(self) -> Clock:
        """The clock."""
        ...

    @property
    def concealed(self) -> Callable[[str], str]:
        """Returns a text without our keys."""
        ...


Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(slots=True)
class _Tries:
    since: datetime
    count: int
    last: float


class LogKeeper:
    """Keeps the logs of one fleet's containers."""

    def __init__(
        self,
        place: tuple[Path, int],
        markets: Mapping[str, port.Market],
        outside: Outside,
        spawn: Spawn,
        may_write: Callable[[], bool],
    ) -> None:
        """Keep logs in the folder of `place`, of as many bytes; none with 0. `may_write` is False on a full disk."""
        self._folder, self._most_bytes = place
        self._markets = markets
        self._clock = outside.clock
        self._spawn = spawn
        self._conceal = outside.concealed
        self._may_write = may_write
        self._kept: dict[tuple[str, int], KeptLog] | None = None
        self._tries: dict[tuple[str, str], _Tries] = {}
        self._refreshed: dict[str, datetime] = {}
        self._asked: deque[float] = deque(maxlen=MOST_IN_HOUR)
        self._running: dict[str, asyncio.Task[None]] = {}

    async def before_ending(self, lease: Lease) -> None:
        """Begin to read the log of a lease that is about to be released or paused; the ending waits for no answer."""
        kept = (self._kept or {}).get((lease.lease_id, lease.runs))
        if kept is None or kept.problem or lease.state in {LeaseState.STARTING, LeaseState.RUNNING}:
            self._begin(lease, Moment("ending", self._clock.now()))
            # With one turn of the loop the request for the log leaves before the order.
            await asyncio.sleep(0)

    def look(self, leases: Iterable[Lease], holds: Collection[OperatorHold]) -> None:
        """Begin to read the logs that are due: first those of what was lost, then those of long runs."""
        if not self._most_bytes:
            return
        if self._kept is None:
            self._kept = {(each.lease, each.run): each for each in _on_disk(self._folder)}
        now, running = self._clock.now(), []
        known = list(leases)
        for lease in known:
            moment = log_moments.of(lease, _held_since(lease, holds))
            if moment is None:
                running.append(lease)
            elif self._is_due(lease, moment):
                self._begin(lease, moment)
        for lease in running:
            if self._is_stale(lease, now) and self._begin(lease, Moment("running", now), spare=MOST_IN_HOUR // 2):
                self._refreshed[lease.lease_id] = now
        ids = {lease.lease_id for lease in known}
        self._refreshed = {key: at for key, at in self._refreshed.items() if key in ids}
        self._tries = {key: tries for key, tries in self._tries.items() if key[0] in ids}
        self._kept = {key: each for key, each in self._kept.items() if key[0] in ids}

    async def settle(self) -> None:
        """Wait for the logs that are being read."""
        await background_tasks.settle(self._running)

    async def close(self) -> None:
        """End every reading, after a moment for those that only have to be written."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=CLOSE_SECONDS)
        await background_tasks.end(self._running)

    def _is_due(self, lease: Lease, moment: Moment) -> bool:
        kept = (self._kept or {}).get((lease.lease_id, lease.runs))
        since = moment.since - (JUST_BEFORE if lease.state is LeaseState.RELEASING else timedelta())
        return kept is None or bool(kept.problem) or kept.taken_at < since

    def _is_stale(self, lease: Lease, now: datetime) -> bool:
        if lease.state is not LeaseState.RUNNING:
            return False
        kept = (self._kept or {}).get((lease.lease_id, lease.runs))
        read_at = kept.taken_at if kept is not None else lease.began
        return now - max(lease.began, read_at, self._refreshed.get(lease.lease_id, lease.began)) >= REFRESH

    def _begin(self, lease: Lease, moment: Moment, spare: int = 0) -> bool:
        """Begin to read a log unless a bound forbids it; return whether it began.

        Without a proof the instance may be another's (rule 18).
        """
        self._running = {key: task for key, task in self._running.items() if not task.done()}
        is_free = lease.lease_id not in self._running and len(self._running) < MOST_AT_ONCE
        market = self._markets.get(lease.market)
        if market is None or not registered_markets.keeps_logs(lease.market):
            return False
        if not self._most_bytes or not is_free or not lease.is_proven or not self._may_write():
            return False
        if not self._has_room(spare) or not self._may_try(lease, moment):
            return False
        self._asked.append(self._clock.monotonic())
        self._running[lease.lease_id] = self._spawn(self._keep(market, lease, moment))
        return True

    def _has_room(self, spare: int) -> bool:
        """Return whether another request fits into this hour, with `spare` ones left."""
        now = self._clock.monotonic()
        while self._asked and now - self._asked[0] >= timedelta(hours=1).total_seconds():
            self._asked.popleft()
        return len(self._asked) < MOST_IN_HOUR - spare

    def _may_try(self, lease: Lease, moment: Moment) -> bool:
        now, key = self._clock.monotonic(), (lease.lease_id, moment.what)
        tries = self._tries.get(key)
        if tries is None or (tries.since != moment.since and now - tries.last >= TRY_SECONDS):
            self._tries[key] = _Tries(moment.since, 1, now)
            return True
        if tries.count >= MOST_TRIES or now - tries.last < TRY_SECONDS:
            return False
        tries.count, tries.last = tries.count + 1, now
        return True

    async def _keep(self, market: port.Market, lease: Lease, moment: Moment) -> None:
        began, problem = self._clock.now(), ""
        lines: list[str] = []
        try:
            async with asyncio.timeout(READ_SECONDS):
                lines = [self._conceal(line) for line in await market.logs(lease.instance_id, LINES)]
        except market_errors.MarketError as error:
            problem = f"{lease.market} does not give it ({error.code})"
        except TimeoutError:
            problem = f"{lease.market} did not give it within {READ_SECONDS:g} s"
        if not lines:
            problem = problem or f"{lease.market} gave no line of it"
            log.info("log.unkept", lease=lease.lease_id, moment=moment.what, reason=problem)
        kept = KeptLog(
            lease.lease_id, str(lease.slot), lease.market, lease.runs, moment.what, began, 0, self._conceal(problem)
        )
        try:
            written = await asyncio.to_thread(kept_log.write, self._folder, kept, lines, self._most_bytes)
        except OSError as error:
            log.warning("log.unwritten", lease=lease.lease_id, folder=str(self._folder), reason=error.strerror)
            return
        if self._kept is not None:
            self._kept[lease.lease_id, lease.runs] = written


def _on_disk(folder: Path) -> list[KeptLog]:
    try:
        return [kept for kept, _ in kept_log.headers(folder)]
    except OSError:
        return []


def _held_since(lease: Lease, holds: Iterable[OperatorHold]) -> datetime | None:
    """Return since when a lease's slot waits for a person; None if it does not."""
    mine = {of_slot(lease.slot), of_workload(lease.slot.workload), of_lease(lease.lease_id)}
    return max((hold.since for hold in holds if hold.word is Word.HELD and hold.target in mine), default=None)
