"""Writes the daemon's signs of life for guards, whose dead man's switches wait for them.

Invariants:
1. Each open lease with a guard gets them, also where the file has no switch any more: its container keeps the
   settings of its rent.
2. No cycle waits for a bucket: a sign is written beside it, and a failed one again after `AGAIN_SECONDS`.
3. Only a write that the bucket confirmed counts as one.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError
from agent.clock import Clock
from agent.decide.facts import Alert
from agent.decide.operators import unsigned
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease
from agent.domain.slot import Slot
from agent.domain.work import sign_of_life
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.signs")

AGAIN_SECONDS = 60.0
MOST_AT_ONCE = 16

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class Switch:
    """Where the guard of one slot looks for signs of life, and how long it waits for one; None: for ever."""

    slot: Slot
    place: Bucket
    folder: str
    after: timedelta | None
    ending: str = "stops"
    """What the guard then does to its instance, in a word."""

    @property
    def key(self) -> tuple[Bucket, str]:
        """Where its signs are: two leases of a slot read the same ones."""
        return self.place, self.folder


@dataclass(slots=True)
class _Written:
    """The signs that one folder had: when the first was due, and when the last was confirmed."""

    due_at: float
    """When the first sign was due, in seconds of the monotonic clock: a wall clock may be set back."""
    at: datetime | None = None
    written_at: float | None = None
    """When the last one was confirmed, in seconds of the monotonic clock."""
    absent_until: datetime | None = None
    """The absence that it told."""
    tried_at: float = float("-inf")
    """By the monotonic clock, in seconds."""


def switches(known: Recollection, workloads: Iterable[Workload], fleet_id: str) -> tuple[Switch, ...]:
    """Return the switches of the open leases.

    Of an adopted lease nobody knows whose folder its container reads: each slot's of its workload gets signs.
    """
    works = {work.name: work for work in workloads}
    found = {}
    for held in known.leases:
        work = works.get(held.slot.workload)
        terms = work.guard if work is not None else None
        if terms is None or terms.bucket is None or not held.is_open:
            continue
        ending = "releases" if terms.destroy else "stops"
        for run in _runs(known.guard_runs, held):
            switch = Switch(held.slot, terms.bucket, run.folder(fleet_id), terms.deadman, ending)
            found[switch.key] = switch
    return tuple(found.values())


def _runs(runs: Iterable[GuardRun], held: Lease) -> list[GuardRun]:
    """Return the runs whose folders the container of a lease may read."""
    mine = [run for run in runs if run.slot.workload == held.slot.workload]
    if held.guard_run is not None:
        return [run for run in mine if (run.slot, run.run) == (held.slot, held.guard_run)]
    # A later run began after its container.
    return list({run.slot: run for run in mine if run.run == 1 or run.begun_at <= held.opened_at}.values())


class SignsOfLife:
    """Keeps guards from firing while the daemon lives."""

    def __init__(self, ledger: Ledger, clock: Clock, spawn: Spawn, secret: Callable[[str], str]) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential."""
        self._ledger = ledger
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._switches: tuple[Switch, ...] = ()
        self._known: dict[tuple[Bucket, str], _Written] = {}
        self._running: dict[tuple[Bucket, str], asyncio.Task[None]] = {}

    def look(self, workloads: Iterable[Workload]) -> None:
        """Begin to write the signs that are due."""
        known = self._ledger.recollection(self._clock.now())
        self._switches = switches(known, workloads, self._ledger.fleet_id)
        keys = {switch.key for switch in self._switches}
        self._running = {key: task for key, task in self._running.items() if not task.done()}
        self._known = {key: written for key, written in self._known.items() if key in keys or key in self._running}
        for key in keys:
            written = self._known.setdefault(key, _Written(self._clock.monotonic()))
            if len(self._running) < MOST_AT_ONCE and self._is_due(key, written, known.absent_until):
                written.tried_at = self._clock.monotonic()
                self._running[key] = self._spawn(self._write(*key, written, known.absent_until))

    async def spread(self, workloads: Iterable[Workload]) -> str:
        """Write what changed, wait for it, and return in words whom it reached."""
        known = tuple(workloads)
        # What was being written already has the word from before.
        for _ in range(2):
            self.look(known)
            if self._running:
                await asyncio.wait(self._running.values())
        absent_until = self._ledger.recollection(self._clock.now()).absent_until
        waiting = [each for each in self._switches if each.after is not None]
        reached = [each for each in waiting if self._known[each.key].absent_until == absent_until]
        return f"{len(reached)} of {len(waiting)} dead man's switch(es) can read it in their buckets"

    def fires(self) -> tuple[tuple[Slot, datetime, str], ...]:
        """Return each switch, the soonest moment at which it fires if the daemon ends now, and what it does then."""
        now = self._clock.now()
        absent_until = self._ledger.recollection(now).absent_until
        found = [
            (each.slot, sign_of_life.fires_at(self._known[each.key].at or now, each.after, absent_until), each.ending)
            for each in self._switches
            if each.after is not None
        ]
        return tuple(sorted(found))

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each switch without a sign for at least a quarter of its time."""
        now = self._clock.monotonic()
        found = []
        for each in self._switches:
            written = self._known[each.key]
            since = written.due_at if written.written_at is None else written.written_at
            silent_for = timedelta(seconds=now - since)
            if each.after is not None and silent_for >= each.after / 4:
                found.append(unsigned.alert(each.slot, str(each.place), each.after, silent_for))
        return tuple(found)

    async def close(self) -> None:
        """End every writing."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._running.clear()

    def _is_due(self, key: tuple[Bucket, str], written: _Written, absent_until: datetime | None) -> bool:
        if key in self._running:
            return False
        age = None if written.written_at is None else self._clock.monotonic() - written.written_at
        is_fresh = age is not None and age < sign_of_life.EVERY.total_seconds()
        if is_fresh and written.absent_until == absent_until:
            return False
        return is_fresh or self._clock.monotonic() - written.tried_at >= AGAIN_SECONDS

    async def _write(self, place: Bucket, folder: str, written: _Written, absent_until: datetime | None) -> None:
        now = self._clock.now()
        try:
            client = BucketClient(place, self._secret(place.credential))
            content = json.dumps(sign_of_life.content(now, absent_until)).encode()
            await client.write(f"{folder}/{sign_of_life.NAME}", content)
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            said = str(error) if isinstance(error, BucketError) else type(error).__name__
            log.warning("sign.unwritten", bucket=str(place), reason=said)
        else:
            written.at, written.written_at, written.absent_until = now, self._clock.monotonic(), absent_until
