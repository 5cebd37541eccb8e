"""Compares the newest checkpoint of paused guarded leases with the objects that their bucket really has.

Invariants:
1. A cycle never waits for a comparison. At most `MOST_AT_ONCE` run, each for at most `AUDIT_SECONDS`.
2. A bucket that does not answer changes nothing: the last comparison stays, with its time.
3. A comparison reads at most `MOST_OBJECTS` names, and `MOST_EARLIER` + 1 manifests of `MOST_BYTES`, one at a time.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

from agent import background_tasks
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketAway, BucketTooLarge
from agent.clock import Clock
from agent.domain.work import carried_checkpoint, only_copy
from agent.domain.work.carried_checkpoint import (
    FOLDER,
    POINTER,
    CarriedCheckpoint,
    CheckpointPointer,
    CheckpointProof,
    StoredObject,
)
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection

log = structlog.get_logger("gpubid.audit")

EVERY_SECONDS = 300.0
AUDIT_SECONDS = 120.0
LOGGED_EVERY_SECONDS = 3600.0
"""How often the log repeats why the bucket of a lease could not be compared; a new reason is logged at once."""
MOST_AT_ONCE = 2
MOST_OBJECTS = 50_000
MOST_EARLIER = 16
MOST_BYTES = 4 * 1024 * 1024
MOST_POINTER_BYTES = 1 << 16

T = TypeVar("T", CheckpointPointer, CarriedCheckpoint)
Spawn = Callable[[Coroutine[Any, Any, CheckpointProof | None]], asyncio.Task[CheckpointProof | None]]
Proofs = Mapping[str, CheckpointProof]
"""By the id of the intent that rented the lease."""


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """One lease whose run's newest checkpoint is compared; `paths` is the number of paths that its guard carries."""

    lease: str
    place: Bucket
    folder: str
    run: int
    paths: int


def targets(known: Recollection, workloads: Iterable[Workload], fleet_id: str) -> tuple[AuditTarget, ...]:
    """Return the leases whose disk may go once its checkpoint is known to be in the bucket."""
    works = {work.name: work for work in workloads}
    runs = {(run.slot, run.run): run for run in known.guard_runs}
    found = []
    for lease in known.leases:
        work = works.get(lease.slot.workload)
        run = runs.get((lease.slot, lease.guard_run or 0))
        place = only_copy.bucket_of(lease, work) if work is not None else None
        if work is not None and work.guard is not None and place is not None and run is not None:
            folder = run.folder(fleet_id)
            found.append(AuditTarget(lease.intent_id, place, folder, run.run, len(work.guard.paths)))
    return tuple(found)


class CheckpointAudit:
    """Compares checkpoints beside the cycles."""

    def __init__(self, clock: Clock, spawn: Spawn, secret: Callable[[str], str]) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential."""
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._running: dict[str, asyncio.Task[CheckpointProof | None]] = {}
        self._asked: dict[str, float] = {}
        self._logged_at: dict[tuple[str, str], float] = {}
        """When a reason was last logged for a lease, in seconds of the monotonic clock."""
        self.proofs: Proofs = {}
        """The last comparisons; the mapping is replaced at every change."""

    def look(self, wanted: Sequence[AuditTarget]) -> None:
        """Keep the comparisons of these leases that have ended, and begin those that are due."""
        leases = {target.lease for target in wanted}
        self._collect(leases)
        now = self._clock.monotonic()
        # The leases that waited longest go first, so that two comparisons that hang do not block the others for ever.
        for target in sorted(wanted, key=lambda target: self._asked.get(target.lease, -1.0)):
            last = self._asked.get(target.lease)
            is_due = target.lease not in self._running and (last is None or now - last >= EVERY_SECONDS)
            if is_due and len(self._running) < MOST_AT_ONCE:
                self._asked[target.lease] = now
                self._running[target.lease] = self._spawn(self._audited(target))

    async def close(self) -> None:
        """End every comparison."""
        await background_tasks.end(self._running)

    def _collect(self, wanted: set[str]) -> None:
        proofs = {lease: proof for lease, proof in self.proofs.items() if lease in wanted}
        for lease, task in list(self._running.items()):
            if lease not in wanted:
                task.cancel()
            if task.done():
                del self._running[lease]
                proof = None if task.cancelled() or task.exception() is not None else task.result()
                if proof is not None and lease in wanted:
                    proofs[lease] = proof
        self._asked = {lease: at for lease, at in self._asked.items() if lease in wanted or lease in self._running}
        self._logged_at = {key: at for key, at in self._logged_at.items() if key[0] in wanted}
        if proofs != self.proofs:
            self.proofs = proofs

    async def _audited(self, target: AuditTarget) -> CheckpointProof | None:
        """Return the result of a comparison, or None if the bucket did not answer every request."""
        began = self._clock.now()
        try:
            client = BucketClient(target.place, self._secret(target.place.credential))
            async with asyncio.timeout(AUDIT_SECONDS):
                name, why = await _compared(client, target)
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            said = str(error) if isinstance(error, BucketAway) else type(error).__name__
            self._log(target, said)
            return None
        return CheckpointProof(began, name, carried_checkpoint.sequence_of(name) or 0, why)

    def _log(self, target: AuditTarget, reason: str) -> None:
        """Log why a bucket could not be compared, unless the same was logged within the hour."""
        now, key = self._clock.monotonic(), (target.lease, reason)
        if now - self._logged_at.get(key, -LOGGED_EVERY_SECONDS) >= LOGGED_EVERY_SECONDS:
            self._logged_at[key] = now
            log.warning("bucket.not_compared", lease=target.lease, bucket=str(target.place), reason=reason)


async def _compared(client: BucketClient, target: AuditTarget) -> tuple[str, str]:
    """Return the name of the newest checkpoint, and the reason why it proves nothing, or an empty text.

    Raises:
        BucketAway: the content of the bucket is unknown.
    """
    pointer = await _note(client, f"{target.folder}/{POINTER}", CheckpointPointer, MOST_POINTER_BYTES)
    if pointer is None:
        return "", f"the bucket has no {POINTER} that can be read"
    name = pointer.manifest
    if carried_checkpoint.sequence_of(name) is None:
        return "", f"{POINTER} names no checkpoint of a guard"
    checkpoint = await _note(client, f"{target.folder}/{name}", CarriedCheckpoint, MOST_BYTES)
    if checkpoint is None:
        return name, f"{name} is not in the bucket, or cannot be read"
    try:
        stored, before = await _listed(client, target, name)
    except BucketTooLarge:
        return name, f"the run's folder has more than {MOST_OBJECTS} objects"
    why = carried_checkpoint.refusal(checkpoint, name, target.run, target.paths, stored)
    if why:
        return name, why
    for each in before:
        earlier = await _note(client, f"{target.folder}/{each}", CarriedCheckpoint, MOST_BYTES)
        why = carried_checkpoint.went_back(checkpoint, {each: earlier}) if earlier is not None else ""
        if why:
            return name, why
    return name, ""


async def _listed(client: BucketClient, target: AuditTarget, name: str) -> tuple[dict[str, StoredObject], list[str]]:
    """Return the objects of a checkpoint by their names in its folder, and the newest manifests before it.

    Raises:
        BucketAway: the content of the bucket is unknown.
        BucketTooLarge: there are more than `MOST_OBJECTS`.
    """
    root, mine = f"{target.folder}/", f"{target.folder}/{carried_checkpoint.folder_of(name)}/"
    last = carried_checkpoint.sequence_of(name) or 0
    stored: dict[str, StoredObject] = {}
    before: list[tuple[int, str]] = []
    async for row in client.listed(f"{target.folder}/{FOLDER}", MOST_OBJECTS):
        short = row.name.removeprefix(root)
        sequence = carried_checkpoint.sequence_of(short)
        if row.name.startswith(mine):
            stored[row.name.removeprefix(mine)] = row
        elif sequence is not None and sequence < last:
            before.append((sequence, short))
    return stored, [short for _, short in heapq.nlargest(MOST_EARLIER, before)]


async def _note(client: BucketClient, path: str, kind: type[T], most_bytes: int) -> T | None:
    """Return a note of the bucket; None where there is none of that shape.

    Raises:
        BucketAway: the content of the bucket is unknown.
    """
    try:
        return carried_checkpoint.read(await client.read(path, most_bytes), kind)
    except BucketTooLarge:
        return None
