"""Finds in the bucket which run the guard of an adopted lease belongs to, after the ledger that knew it was lost.

The label of an instance has the id of its rent, and the guard's beat bears that id. The folder that has such a beat is
the folder of its run.

Invariants:
1. Only a lease whose rent the ledger does not know is searched for; any other one has its run, or no guard.
2. A run is recorded only if exactly one folder of the slot has the beat. Until then nothing is concluded from a bucket.
3. No cycle waits for a bucket. At most `MOST_AT_ONCE` searches run, each for at most `SEARCH_SECONDS`, and each looks
   only at the first `MOST_RUNS` runs.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from agent import background_tasks
from agent.act.guarding import dead_man_switches, kept_runs
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketTooLarge
from agent.clock import Clock
from agent.decide.operators import guard_runs, reload
from agent.domain.fleet import MarketView
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease
from agent.domain.work.guard_report import GuardBeat
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.run_claim import RunClaim
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.store import Ledger

log = structlog.get_logger("gpubid.run_search")

SEARCH_SECONDS = 120.0
EVERY_SECONDS, LATER_SECONDS = 60.0, 600.0
"""Between two searches for a lease: of the first `SOON`, and of the later ones."""
SOON = 10
MOST_AT_ONCE = 2
NEVER = 0, float("-inf")
"""How often a run was searched for, and when last, in seconds of the monotonic clock."""
MOST_RUNS = 64
MOST_BYTES = 1 << 16

Found = tuple[str, int, RunClaim | None] | str
"""The name in the folder of a run, its number and its claim; or why no run was found."""
Spawn = Callable[[Coroutine[Any, Any, Found]], asyncio.Task[Found]]


@dataclass(frozen=True, slots=True)
class Sought:
    """An adopted lease, and the folders that its guard may report in."""

    held: Lease
    work: Workload
    intent_id: str
    """The id of its rent, from its label."""
    place: Bucket
    names: tuple[str, ...]
    """The workload's names, the present one first: a run keeps the name that it began with."""


def sought(
    known: Recollection, workloads: Iterable[Workload], views: Iterable[MarketView], fleet_id: str
) -> Iterator[Sought]:
    """Yield the open leases of guarded workloads whose rents the ledger does not know."""
    works, labels = {work.name: work for work in workloads}, {view.market: view.labels for view in views}
    for lease in known.leases:
        work = works.get(lease.slot.workload)
        place = work.guard.bucket if work is not None and work.guard is not None else None
        label = labels.get(lease.market, {}).get(lease.instance_id)
        if work is None or place is None or label is None or lease.is_held or not lease.is_proven:
            continue
        if dead_man_switches.is_unfound(lease) and (label.fleet_id, label.slot.index) == (fleet_id, lease.slot.index):
            names = dict.fromkeys(name for name in (work.name, label.slot.workload, work.was) if name)
            yield Sought(lease, work, label.intent_id, place, tuple(names))


class RunSearch:
    """Searches beside the cycles, and records the runs that it found."""

    def __init__(
        self, ledger: Ledger, clock: Clock, spawn: Spawn, secret: Callable[[str], str], *, is_dry: bool = False
    ) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by its credential's name. A dry one is idle."""
        self._ledger = ledger
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._is_dry = is_dry
        self._running: dict[str, asyncio.Task[Found]] = {}
        self._asked: dict[str, tuple[int, float]] = {}
        """How often a lease was searched for, and when last, in seconds of the monotonic clock."""
        self._logged: dict[str, str] = {}
        """Why the run of a lease is not found, as the log said last."""

    async def keep(self, workloads: Iterable[Workload], views: Iterable[MarketView]) -> None:
        """Record the runs that were found, and begin the searches that are due.

        Raises:
            LedgerError: the ledger could not be written; the runs are searched for again.
        """
        if self._is_dry:
            return
        known = self._ledger.recollection(self._clock.now())
        wanted = {each.held.lease_id: each for each in sought(known, workloads, views, self._ledger.fleet_id)}
        self._asked = {key: asked for key, asked in self._asked.items() if key in wanted}
        self._logged = {key: why for key, why in self._logged.items() if key in wanted}
        for lease_id, task in list(self._running.items()):
            if task.done():
                del self._running[lease_id]
                if lease_id in wanted and not task.cancelled():
                    await self._conclude(wanted[lease_id], task.result(), known.guard_runs)
        now = self._clock.monotonic()
        # The one that was searched for longest ago goes first: two buckets that hang keep no other search waiting.
        for lease_id, each in sorted(wanted.items(), key=lambda pair: self._asked.get(pair[0], NEVER)[1]):
            count, last = self._asked.get(lease_id, NEVER)
            is_due = now - last >= (EVERY_SECONDS if count < SOON else LATER_SECONDS)
            if is_due and lease_id not in self._running and len(self._running) < MOST_AT_ONCE:
                self._asked[lease_id] = count + 1, now
                self._running[lease_id] = self._spawn(self._search(each))

    async def close(self) -> None:
        """End every search."""
        await background_tasks.end(self._running)

    async def _conclude(self, each: Sought, found: Found, runs: Iterable[GuardRun]) -> None:
        """Record a run that was found, or say once why none was."""
        why = found if isinstance(found, str) else await self._record(each, *found, runs)
        lease = each.held
        if why and self._logged.get(lease.lease_id) != why:
            log.warning("guard.unfound", lease=lease.lease_id, slot=str(lease.slot), bucket=str(each.place), reason=why)
            self._logged[lease.lease_id] = why

    async def _record(
        self, each: Sought, name: str, number: int, claim: RunClaim | None, runs: Iterable[GuardRun]
    ) -> str:
        """Record the run of a lease, or return why that is impossible."""
        lease = each.held
        begun = next((run for run in runs if (run.slot, run.run) == (lease.slot, number)), None)
        if begun is not None and begun.name != name:
            return (
                f"its beat is in the folder of run {number} of {name}, and the ledger has run {number} of {begun.name}"
            )
        async with self._ledger.transaction() as tx:
            tx.update_lease(replace(lease, intent_id=each.intent_id, guard_run=number))
            for run in _runs(each, (name, number), claim, runs, self._clock.now()):
                tx.begin_run(run)
        log.info("guard.recognized", lease=lease.lease_id, slot=str(lease.slot), run=number)
        return ""

    async def _search(self, each: Sought) -> Found:
        """Return the one run whose folder has the beat of a lease, or why there is none."""
        try:
            client = BucketClient(each.place, self._secret(each.place.credential))
            async with asyncio.timeout(SEARCH_SECONDS):
                folders = [at for at in _folders(each) if await self._has_beat(client, each, *at)]
                claim = await kept_runs.claim_in(client, self._folder(each, *folders[0])) if len(folders) == 1 else None
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            return f"the bucket could not be read: {type(error).__name__}"
        if len(folders) == 1:
            return *folders[0], claim
        places = ", ".join(f"{name}/{each.held.slot.index}/{run}" for name, run in folders)
        return f"the folders {places} have its beat" if folders else f"none of its first {MOST_RUNS} runs has its beat"

    def _folder(self, each: Sought, name: str, run: int) -> str:
        return f"{self._ledger.fleet_id}/{name}/{each.held.slot.index}/{run}"

    async def _has_beat(self, client: BucketClient, each: Sought, name: str, run: int) -> bool:
        try:
            content = await client.read(f"{self._folder(each, name, run)}/beat-{each.intent_id}.json", MOST_BYTES)
            return content is not None and msgspec.json.decode(content, type=GuardBeat).lease == each.intent_id
        except (BucketTooLarge, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False


def _runs(
    each: Sought, at: tuple[str, int], claim: RunClaim | None, known: Iterable[GuardRun], now: datetime
) -> Iterator[GuardRun]:
    """Yield the runs to record: that of a lease, with its claim's spec, and the next one if the spec has changed."""
    held, (name, number) = each.held, at
    mine = [run for run in known if run.slot == held.slot]
    begun = next((run for run in mine if run.run == number), None)
    if begun is None:
        spec = (claim.spec if claim is not None else held.spec_digest) or reload.spec_digest(each.work, held.slot.index)
        begun_at = min(claim.begun_at, now) if claim is not None else now
        yield GuardRun(held.slot, number, name, spec, begun_at)
    elif claim is not None and claim.spec != begun.spec_digest and number == max(run.run for run in mine):
        yield guard_runs.next_run(begun, now)


def _folders(each: Sought) -> Iterator[tuple[str, int]]:
    return ((name, run) for name in each.names for run in range(1, MOST_RUNS + 1))
