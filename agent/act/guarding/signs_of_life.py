"""Writes the daemon's signs of life for guards, whose dead man's switches wait for them.

Invariants:
1. Each open lease with a guard gets them, and its switch is told of, as its container was told at its rent: the file
   may say something else today.
2. No cycle waits for a bucket: a sign is written beside it, and a failed one again after `AGAIN_SECONDS`.
3. Only a write that the bucket confirmed counts as one.
4. A daemon whose passes fail looks after nothing: it writes none before its first good pass, and none once the last one
   is older than half of a switch's time. What a person orders is written all the same.
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
from agent.domain.work import kept_terms, sign_of_life
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

    A container has the switch of its rent; where nobody recorded that, it is taken for the file's. Of two leases that
    read the same signs the switch that fires first is returned. Of an adopted lease nobody knows whose folder its
    container reads: each slot's of its workload gets signs.
    """
    works = {work.name: work for work in workloads}
    found: dict[tuple[Bucket, str], Switch] = {}
    for held in known.leases:
        work = works.get(held.slot.workload)
        place = work.guard.bucket if work is not None and work.guard is not None else None
        terms = kept_terms.read(held)
        if work is not None and (terms is None or not terms.is_switch_recorded):
            terms = kept_terms.of(work)
        if place is None or terms is None or not held.is_open:
            continue
        ending = "releases" if terms.destroys else "stops"
        for run in _runs(known.guard_runs, held):
            switch = Switch(held.slot, place, run.folder(fleet_id), terms.deadman, ending)
            found[switch.key] = _sooner(found.get(switch.key), switch)
    return tuple(found.values())


def _sooner(one: Switch | None, other: Switch) -> Switch:
    """Return the switch that fires first; one that never fires is the last."""
    if one is None or one.after is None:
        return other
    return one if other.after is None or one.after <= other.after else other


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
        self._began = clock.monotonic()
        self._good_at: float | None = None
        """When the last pass ended that did not fail, in seconds of the monotonic clock."""
        self._is_withheld = False

    def note_pass(self) -> None:
        """Note that a pass succeeds now."""
        self._good_at = self._clock.monotonic()

    def look(self, workloads: Iterable[Workload], *, is_ordered: bool = False) -> None:
        """Begin to write the signs that are due; `is_ordered` where a person's word is to be spread."""
        known = self._ledger.recollection(self._clock.now())
        self._switches = switches(known, workloads, self._ledger.fleet_id)
        keys = {switch.key for switch in self._switches}
        withheld = set() if is_ordered else {each.key for each in self._switches if not self._is_looked_after(each)}
        self._tell_withheld(len(withheld))
        self._running = {key: task for key, task in self._running.items() if not task.done()}
        self._known = {key: written for key, written in self._known.items() if key in keys or key in self._running}
        for key in keys:
            written = self._known.setdefault(key, _Written(self._clock.monotonic()))
            may_begin = key not in withheld and len(self._running) < MOST_AT_ONCE
            if may_begin and self._is_due(key, written, known.absent_until):
                written.tried_at = self._clock.monotonic()
                self._running[key] = self._spawn(self._write(*key, written, known.absent_until))

    async def spread(self, workloads: Iterable[Workload]) -> str:
        """Write what changed, wait for it, and return in words whom it reached."""
        known = tuple(workloads)
        rounds = 0
        # What was being written already has the word from before, and so many are written at once.
        while rounds < 2 + len(self._switches) // MOST_AT_ONCE:
            self.look(known, is_ordered=True)
            if self._running:
                await asyncio.wait(self._running.values())
            rounds += 1
        absent_until = self._ledger.recollection(self._clock.now()).absent_until
        waiting = [each for each in self._switches if each.after is not None]
        reached = [each for each in waiting if self._known[each.key].absent_until == absent_until]
        return f"{len(reached)} of {len(waiting)} dead man's switch(es) can read it in their buckets"

    def fires(self) -> tuple[tuple[Slot, datetime | None, str], ...]:
        """Return each switch, the soonest moment at which it fires if the daemon ends now, and what it does then.

        None is any moment: this program wrote no sign that the bucket confirmed, so nobody knows how old the last is.
        """
        absent_until = self._ledger.recollection(self._clock.now()).absent_until
        found: list[tuple[Slot, datetime | None, str]] = []
        for each in self._switches:
            at = self._known[each.key].at
            if each.after is not None:
                fires_at = None if at is None else sign_of_life.fires_at(at, each.after, absent_until)
                found.append((each.slot, fires_at, each.ending))
        return tuple(sorted(found, key=lambda fire: fire[0]))

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each switch without a sign, or a pass that succeeds, for a quarter of its time."""
        failing_for = self._failing_for()
        found = []
        for each in self._switches:
            if each.after is None:
                continue
            silent_for = self._silent_for(self._known[each.key])
            if failing_for >= each.after / 4:
                found.append(unsigned.failing(each.slot, each.after, failing_for))
            elif silent_for >= each.after / 4:
                found.append(unsigned.alert(each.slot, str(each.place), each.after, silent_for))
        return tuple(found)

    def _failing_for(self) -> timedelta:
        """Return since when no pass succeeds."""
        return timedelta(seconds=self._clock.monotonic() - (self._began if self._good_at is None else self._good_at))

    def _silent_for(self, written: _Written) -> timedelta:
        since = written.due_at if written.written_at is None else written.written_at
        return timedelta(seconds=self._clock.monotonic() - since)

    def _is_looked_after(self, switch: Switch) -> bool:
        """Return whether passes succeed: only then is this daemon's life worth a sign."""
        return self._good_at is not None and self._failing_for() < (switch.after or sign_of_life.SHORTEST) / 2

    def _tell_withheld(self, count: int) -> None:
        if count and not self._is_withheld:
            log.error("sign.withheld", switches=count, reason="no pass succeeds: guards end their instances in time")
        self._is_withheld = bool(count)

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
