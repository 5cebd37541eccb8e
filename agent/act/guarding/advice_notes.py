"""Writes to running guards how often to make a checkpoint, from the figures that were learned since their rent.

Invariants:
1. No cycle waits for a bucket, and intervals are computed anew only each `EVERY_SECONDS`.
2. A note is written once to each lease, and again if an interval has changed by more than `CHANGED`: the ledger does
   not have the intervals that its container was given.
3. A write that fails is tried again at the next look.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

import structlog

from agent import background_tasks
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError
from agent.clock import Clock
from agent.decide.moves import checkpointing
from agent.domain.fleet import Fleet
from agent.domain.work.decision import Advice
from agent.observe.guard_reader import GuardTarget

log = structlog.get_logger("gpubid.advice")

EVERY_SECONDS = 600.0
CHANGED = 1.25
MOST_AT_ONCE = 4
VERSION = 1

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class AdviceNotes:
    """Keeps the intervals of running guards up to date."""

    def __init__(self, clock: Clock, spawn: Spawn, secret: Callable[[str], str]) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential."""
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._looked_at = float("-inf")
        self._wanted: Mapping[str, Advice] = {}
        self._tried: set[str] = set()
        """The leases whose note was tried since the intervals were computed."""
        self._written: dict[str, Advice] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    def look(self, fleet: Fleet, targets: Iterable[GuardTarget]) -> None:
        """Begin to write the notes that are due to these guards."""
        if self._clock.monotonic() - self._looked_at >= EVERY_SECONDS:
            self._looked_at, self._tried = self._clock.monotonic(), set()
            self._wanted = checkpointing.of_guards(fleet)
            self._written = {lease: given for lease, given in self._written.items() if lease in self._wanted}
        self._running = {lease: task for lease, task in self._running.items() if not task.done()}
        for target in targets:
            given = self._wanted.get(target.lease)
            is_free = target.lease not in self._tried and len(self._running) < MOST_AT_ONCE
            if given is not None and is_free and _differs(self._written.get(target.lease), given):
                self._tried.add(target.lease)
                self._running[target.lease] = self._spawn(self._write(target, given))

    async def close(self) -> None:
        """End every write."""
        await background_tasks.end(self._running)

    async def _write(self, target: GuardTarget, given: Advice) -> None:
        note = {"version": VERSION, "lease": target.lease, "by_age": [list(step) for step in given.by_age]}
        try:
            client = BucketClient(target.place, self._secret(target.place.credential))
            await client.write(f"{target.folder}/advice-{target.lease}.json", json.dumps(note).encode())
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            said = error.code if isinstance(error, BucketError) else type(error).__name__
            log.info("guard.unadvised", bucket=str(target.place), lease=target.lease, code=said)
            return
        self._written[target.lease] = given


def _differs(before: Advice | None, now: Advice) -> bool:
    """Return whether an interval has changed enough to be worth a note."""
    if before is None or len(before.by_age) != len(now.by_age):
        return True
    pairs = zip(before.by_age, now.by_age, strict=True)
    return any(max(one[1], other[1]) > CHANGED * min(one[1], other[1]) for one, other in pairs)
