"""Prepares the start of a guard: uploads the program, signs its address, and looks for a checkpoint of the run.

Invariants:
1. A bucket that does not answer proves nothing: a run that may have a checkpoint starts as if it had one.
2. A run that has an end, also one that cannot be read, never starts without the guard: its work may be done.
   Nothing is rented for a batch whose end has a done code.
3. Nothing here delays a rent by more than the deadline of twelve requests to the bucket.
4. Each rent looks whether the bucket still has the program: without it a new container starts bare or not at all.
5. A bucket that did not answer at a rent gets the program later: a container waits ten minutes for it, and then runs
   without. A bucket that fails again is tried again after a wait, longer each time.
"""

import hashlib
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import structlog

from agent.act.guarding import folder_claims, kept_runs
from agent.act.guarding.guard_launch import GuardLaunch
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketAway, BucketError
from agent.decide.facts import Alert
from agent.decide.operators import unlisted_buckets
from agent.domain.record.guard_run import GuardRun
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Lease
from agent.domain.work.guard_terms import Bucket, GuardTerms
from agent.domain.work.run_claim import KeptRun
from agent.domain.work.workload import Workload
from agent.markets import market_errors

log = structlog.get_logger("gpubid.guard")

MOST_PROGRAM = 1 << 20
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 60.0, 900.0
"""The wait after a first failure, doubled by each further one, and the longest wait."""
POINTER = "latest.json"


@dataclass(frozen=True, slots=True)
class Program:
    """The guard as one file."""

    content: bytes

    @property
    def sha256(self) -> str:
        """Its digest, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def path(self) -> str:
        """Its name below the bucket's folder."""
        return f"guard/{self.sha256}.pyz"


@dataclass(slots=True)
class _FoundRun:
    """What the bucket has of a run, as far as it was read. Without an answer a run may have a checkpoint."""

    exists: bool
    is_listed: bool
    """Whether the runs of the slot are known, so that no other one has to be looked for."""
    url: str = ""
    finished: str = ""
    kept: KeptRun | None = None
    unlisted: str = ""


class GuardLaunches:
    """Prepares the starts of guards; remembers which buckets have the program."""

    def __init__(
        self,
        fleet_id: str,
        program: Callable[[], bytes],
        credential: Callable[[str], str],
        apis: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take the fleet's id, functions that make the program and return a named credential, and the markets' APIs."""
        self._fleet_id = fleet_id
        self._apis = apis
        self._make = program
        self._credential = credential
        self._program: Program | None = None
        self._uploaded: set[Bucket] = set()
        self._claimed: set[tuple[Bucket, str]] = set()
        """The folders that are claimed, by workload."""
        self._claimed_runs: set[tuple[Bucket, str]] = set()
        """The folders of runs that are claimed."""
        self._preparing: set[str] = set()
        """Workloads whose bucket is prepared beside the cycles."""
        self._waits: dict[str, tuple[float, float]] = {}
        """By workload whose bucket failed: the end of its wait (monotonic clock) and its length, in seconds."""
        self._refused: dict[str, str] = {}
        """By workload whose bucket refuses our key by its own code: its sentence."""

    def look(
        self,
        leases: Iterable[Lease],
        workloads: Iterable[Workload],
        begin: Callable[[Coroutine[Any, Any, None]], None],
        now: float,
        spoken: Collection[str] = (),
    ) -> None:
        """Begin to prepare the buckets of open leases that are not known to be prepared.

        `now` is monotonic seconds; `spoken` are the intents of leases whose guard has spoken, so that it has the
        program.
        """
        rented = {lease.slot.workload for lease in leases if lease.is_open and lease.intent_id not in spoken}
        rented -= {name for name, (until, _) in self._waits.items() if now < until}
        for work in workloads:
            place = work.guard.bucket if work.guard is not None else None
            if place is None or work.name not in rented - self._preparing or self._is_prepared(place, work):
                continue
            self._preparing.add(work.name)
            begin(self._prepared(place, work, now))

    async def launch(
        self, work: Workload, intent: Intent, run: GuardRun | None, *, is_first: bool, is_behind: bool = False
    ) -> GuardLaunch | None:
        """Return how the guard of a rent starts, or None for a workload without one.

        With `is_first` this run had no lease before, so nobody can have made a checkpoint of it. With `is_behind` the
        ledger may lack later runs, as one that was restored does.
        """
        if work.guard is None:
            return None
        program = self._program = self._program or Program(self._make())
        place = work.guard.bucket
        if place is None or run is None:
            return self._without_bucket(work.guard, intent, run, program, is_first=is_first)
        found = _FoundRun(exists=not is_first, is_listed=not is_first and not is_behind)
        try:
            await self._look(found, program, work, place, run)
        except (BucketError, ValueError, market_errors.Rejected) as error:
            code = error.code if isinstance(error, BucketError) else "bad_credential"
            log.warning("guard.unprepared", workload=work.name, slot=str(intent.slot), code=code, bucket=str(place))
            found.unlisted = "" if found.is_listed else str(error)
            self._note(work, error)
        else:
            self._note(work, None)
        return GuardLaunch(
            intent.intent_id,
            run.run,
            run.folder(self._fleet_id),
            manifest_exists=found.exists,
            url=found.url,
            sha256=program.sha256,
            market=intent.market,
            api=self._apis.get(intent.market, ""),
            finished=found.finished,
            kept=found.kept,
            unlisted=found.unlisted,
        )

    async def _look(self, found: "_FoundRun", program: Program, work: Workload, place: Bucket, run: GuardRun) -> None:
        """Find what the bucket has of a run, and prepare the run there. What was found before an error is kept.

        Raises: BucketError, ValueError, Rejected.
        """
        client, folder = BucketClient(place, self._credential(place.credential)), run.folder(self._fleet_id)
        found.url = client.presigned(program.path)
        if not found.is_listed:
            found.kept = await kept_runs.highest(client, self._fleet_id, run, work)
        found.is_listed = True
        end = await kept_runs.found(client, f"{folder}/{kept_runs.END}")
        found.finished = kept_runs.finished(end, work)
        found.exists = end is not None or await kept_runs.found(client, f"{folder}/{POINTER}") is not None
        if found.kept is None or found.kept.number < run.run or found.kept.is_in_folder_of(run):
            # Others can remove the program: a lifecycle rule of the bucket, or a host that has its key.
            self._uploaded.discard(place)
            await self._prepare(client, program, work)
            await self._claim_run(client, folder, run)

    def _without_bucket(
        self, terms: GuardTerms, intent: Intent, run: GuardRun | None, program: Program, *, is_first: bool
    ) -> GuardLaunch:
        """Return the start of a guard whose store nobody here reads: rclone's may have a checkpoint of an old run."""
        if run is None or not terms.rclone:
            return GuardLaunch(intent.intent_id, 1, "", manifest_exists=False, url="", sha256=program.sha256)
        folder = run.folder(self._fleet_id)
        return GuardLaunch(intent.intent_id, run.run, folder, not is_first, url="", sha256=program.sha256)

    def alerts(self) -> Sequence[Alert]:
        """Return an alert for each workload whose bucket refuses our key: its guards have the same key."""
        return tuple(unlisted_buckets.refused(name, why) for name, why in self._refused.items())

    def _note(self, work: Workload, error: Exception | None) -> None:
        """Note whether the bucket of a workload refuses our key by its own code; only an answer ends that."""
        if isinstance(error, BucketAway) and error.is_proven:
            self._refused[work.name] = str(error)
        elif error is None:
            self._refused.pop(work.name, None)

    def _is_prepared(self, place: Bucket, work: Workload) -> bool:
        return place in self._uploaded and (place, work.name) in self._claimed

    async def _prepared(self, place: Bucket, work: Workload, now: float) -> None:
        """Prepare a bucket. One that fails again is tried again after a wait."""
        program = self._program = self._program or Program(self._make())
        try:
            await self._prepare(BucketClient(place, self._credential(place.credential)), program, work)
            self._waits.pop(work.name, None)
            self._note(work, None)
            log.info("guard.prepared", workload=work.name, bucket=str(place))
        except (BucketError, ValueError, market_errors.Rejected) as error:
            code = error.code if isinstance(error, BucketError) else "bad_credential"
            before = self._waits.get(work.name)
            wait = FIRST_WAIT_SECONDS if before is None else min(2 * before[1], LONGEST_WAIT_SECONDS)
            self._waits[work.name] = now + wait, wait
            self._note(work, error)
            write = log.warning if before is None else log.debug
            write("guard.unprepared", workload=work.name, code=code, bucket=str(place))
        finally:
            self._preparing.discard(work.name)

    async def _prepare(self, client: BucketClient, program: Program, work: Workload) -> None:
        await self._upload(client, program)
        if (client.place, work.name) not in self._claimed:
            await folder_claims.claim(client, self._fleet_id, work)
            self._claimed.add((client.place, work.name))

    async def _claim_run(self, client: BucketClient, folder: str, run: GuardRun) -> None:
        if (client.place, folder) not in self._claimed_runs:
            await kept_runs.claim(client, folder, run)
            self._claimed_runs.add((client.place, folder))

    async def _upload(self, client: BucketClient, program: Program) -> None:
        """Upload the program unless the bucket has it; another file of its name is replaced."""
        if client.place in self._uploaded:
            return
        there = await client.read(program.path, MOST_PROGRAM)
        if there is None or Program(there).sha256 != program.sha256:
            await client.write(program.path, program.content)
        self._uploaded.add(client.place)
