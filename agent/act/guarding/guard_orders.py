"""Writes to guards: asks them for a last checkpoint, and takes such an order back when its ending is given up.

Invariants:
1. No cycle waits for a bucket here: orders are written beside it, one request a folder at a time.
2. What should stand in a bucket is derived in every cycle, and written until the bucket took it; after a restart the
   order that stands there is read first.
3. An order names its lease: a second container of the same slot does not take it.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError, BucketTooLarge
from agent.clock import Clock
from agent.decide.moves.last_checkpoint import order_of
from agent.decide.plan import Plan
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Pause, Release
from agent.domain.work.guard_terms import Bucket

log = structlog.get_logger("gpubid.guard")

ORDER = "order.json"
VERSION = 1
MOST_BYTES = 1 << 16
AGAIN_SECONDS = 5.0
"""An order that the bucket did not take is written again no sooner; its ending waits for seconds only."""
LOOK_AGAIN_SECONDS = 60.0

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class GuardOrder:
    """The order of one lease: make this checkpoint and none beside it, or, without one, go on as ever."""

    lease: str
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a run in a bucket: the containers of a slot share it, and one order."""

    place: Bucket
    path: str


def wanted(planned: Plan, leases: Iterable[Lease]) -> Mapping[str, str]:
    """Return the ids of the orders that stand after a plan, by the id of the intent that rented each lease."""
    found = {asked.lease.intent_id: asked.order for asked in planned.asked}
    ending = {each.lease.lease_id for each in planned.decisions if isinstance(each, Pause | Release)}
    for held in leases:
        if held.lease_id in ending and held.checkpoint_asked_at is not None:
            found[held.intent_id] = order_of(held, held.checkpoint_asked_at)
    return found


class GuardOrders:
    """Keeps the orders in buckets as they are wanted."""

    def __init__(self, clock: Clock, spawn: Spawn, secret: Callable[[str], str]) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential."""
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._running: dict[Folder, asyncio.Task[None]] = {}
        self._tried: dict[Folder, float] = {}
        self._standing: dict[Folder, GuardOrder] = {}

    def see(self, asked: Mapping[str, str], folders: Mapping[str, Folder]) -> None:
        """Begin to write what differs from what is wanted: the ids of the orders, and the folders, both by lease."""
        self._running = {folder: task for folder, task in self._running.items() if not task.done()}
        leases: dict[Folder, list[str]] = {}
        for lease, folder in folders.items():
            leases.setdefault(folder, []).append(lease)
        self._standing = {folder: order for folder, order in self._standing.items() if folder in leases}
        for folder, mine in leases.items():
            ids = [GuardOrder(lease, asked[lease]) for lease in mine if lease in asked]
            if folder not in self._running:
                self._keep(folder, ids[0] if ids else None)

    async def close(self) -> None:
        """End every request."""
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        self._running.clear()

    def _keep(self, folder: Folder, order: GuardOrder | None) -> None:
        standing = self._standing.get(folder)
        if order is not None and order != standing and self._is_time(folder, AGAIN_SECONDS):
            self._begin(folder, self._write(folder, order))
        elif order is None and standing is None and self._is_time(folder, LOOK_AGAIN_SECONDS):
            self._begin(folder, self._read(folder))
        elif order is None and standing is not None and standing.checkpoint and self._is_time(folder, AGAIN_SECONDS):
            self._begin(folder, self._write(folder, GuardOrder(standing.lease)))

    def _is_time(self, folder: Folder, seconds: float) -> bool:
        tried = self._tried.get(folder)
        return tried is None or self._clock.monotonic() - tried >= seconds

    def _begin(self, folder: Folder, work: Coroutine[Any, Any, None]) -> None:
        self._tried[folder] = self._clock.monotonic()
        self._running[folder] = self._spawn(work)

    async def _write(self, folder: Folder, order: GuardOrder) -> None:
        body = json.dumps(_note(order, self._clock.now()), separators=(",", ":")).encode()
        try:
            await self._client(folder).write(f"{folder.path}/{ORDER}", body)
        except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
            _tell(folder, error)
            return
        self._standing[folder] = order
        self._tried.pop(folder, None)
        log.info("guard.ordered", lease=order.lease, checkpoint=order.checkpoint or "")

    async def _read(self, folder: Folder) -> None:
        """Learn which order stands, after a start of this program."""
        try:
            content = await self._client(folder).read(f"{folder.path}/{ORDER}", MOST_BYTES)
        except BucketTooLarge:
            content = b""
        except Exception as error:  # noqa: BLE001 - as above
            _tell(folder, error)
            return
        self._standing.setdefault(folder, _order(content))
        self._tried.pop(folder, None)

    def _client(self, folder: Folder) -> BucketClient:
        return BucketClient(folder.place, self._secret(folder.place.credential))


def _note(order: GuardOrder, now: datetime) -> Mapping[str, object]:
    """Return an order as the guard reads it."""
    is_quiet = order.checkpoint is not None
    sequence = int(now.timestamp())
    return {
        "version": VERSION,
        "written_sequence": sequence,
        "checkpoint": order.checkpoint,
        "quiet": is_quiet,
        "lease": order.lease,
    }


def _order(content: bytes | None) -> GuardOrder:
    """Return the order that a note is; one that nobody can read asks for nothing."""
    try:
        told = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        told = {}
    told = told if isinstance(told, dict) else {}
    lease, checkpoint = told.get("lease"), told.get("checkpoint")
    return GuardOrder(
        lease if isinstance(lease, str) else "", checkpoint if isinstance(checkpoint, str) and checkpoint else None
    )


def _tell(folder: Folder, error: Exception) -> None:
    said = error.code if isinstance(error, BucketError) else type(error).__name__
    log.warning("guard.unordered", bucket=str(folder.place), code=said)
