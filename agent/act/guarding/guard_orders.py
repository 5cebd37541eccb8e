"""Writes to guards: asks them for a last checkpoint, and takes such an order back when its ending is given up.

Invariants:
1. No cycle waits for a bucket here: orders are written beside it, one request a folder at a time.
2. The order that a bucket should have is derived in every cycle, and written until the bucket took it. After a restart
   the order in the bucket is read first.
3. An order names its lease: a second container of the same slot does not take it.
4. A wanted order does not wait for that read. It is tried up to `TRIES` times: its ending waits for seconds only.
   `written` has the start of the try that the bucket took; after a restart it is not known.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from agent import background_tasks
from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError, BucketTooLarge
from agent.clock import Clock
from agent.decide.moves.last_checkpoint import is_order_over, order_of
from agent.decide.plan import Plan
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Pause, Release
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload

log = structlog.get_logger("gpubid.guard")

ORDER = "order.json"
VERSION = 1
MOST_BYTES = 1 << 16
AGAIN_SECONDS = 5.0
"""The shortest wait before an order that failed all its tries is written again."""
TRIES = 3
RETRY_SECONDS = 2.0
LOOK_AGAIN_SECONDS = 60.0
NEVER = datetime.min.replace(tzinfo=UTC)

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


@dataclass(frozen=True, slots=True)
class GuardOrder:
    """The order of one lease: make this checkpoint and none beside it, or, without one, work on as usual."""

    lease: str
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a run in a bucket: the containers of a slot share it, and one order."""

    place: Bucket
    path: str


def wanted(planned: Plan, leases: Iterable[Lease], workloads: Iterable[Workload]) -> Mapping[str, str]:
    """Return the ids of the orders that are due after a plan, by the id of the intent that rented each lease.

    Of several orders of a slot the first is written: the one for which an ending waits, else the newest, else the one
    before announced maintenance. A lease whose ending the market refuses works on and bills, so its guard may make
    checkpoints again.
    """
    works = {work.name: work for work in workloads}
    wanted_orders = {asked.lease.intent_id: asked.order for asked in planned.asked}
    ending = {each.lease.lease_id for each in planned.decisions if isinstance(each, Pause | Release)}
    for lease in sorted(leases, key=lambda lease: lease.checkpoint_asked_at or NEVER, reverse=True):
        since = lease.checkpoint_asked_at
        if lease.lease_id in ending and since and not is_order_over(lease, works.get(lease.slot.workload), planned.now):
            wanted_orders.setdefault(lease.intent_id, order_of(lease, since))
    for intent_id, order in planned.before_maintenance:
        wanted_orders.setdefault(intent_id, order)
    return wanted_orders


class GuardOrders:
    """Keeps the orders in buckets as they are wanted."""

    def __init__(self, clock: Clock, spawn: Spawn, secret: Callable[[str], str]) -> None:
        """Start tasks with `spawn`; `secret` gives the key of a bucket by the name of its credential."""
        self._clock = clock
        self._spawn = spawn
        self._secret = secret
        self._running: dict[Folder, asyncio.Task[None]] = {}
        self._tried: dict[Folder, tuple[float, GuardOrder | None]] = {}
        self._reading: set[Folder] = set()
        self._standing: dict[Folder, GuardOrder] = {}
        self.written: Mapping[str, datetime] = {}
        """When each present order that its bucket took was sent, by the order's id.

        The mapping is replaced at every change.
        """

    def see(self, asked: Mapping[str, str], folders: Mapping[str, Folder]) -> None:
        """Begin to write the orders that differ from the wanted: the ids of the orders and the folders, by lease."""
        self._running = {folder: task for folder, task in self._running.items() if not task.done()}
        leases: dict[Folder, list[str]] = {}
        for lease, folder in folders.items():
            leases.setdefault(folder, []).append(lease)
        self._standing = {folder: order for folder, order in self._standing.items() if folder in leases}
        self._tried = {folder: tried for folder, tried in self._tried.items() if folder in leases}
        self._reading &= self._running.keys()
        if not self.written.keys() <= set(asked.values()):
            self.written = {order: at for order, at in self.written.items() if order in asked.values()}
        for folder, mine in leases.items():
            ids = [GuardOrder(lease, order) for lease, order in asked.items() if lease in mine]
            if ids and folder in self._reading and folder in self._running:
                # The running request reads an order that is replaced now.
                self._running.pop(folder).cancel()
            if folder not in self._running:
                self._keep(folder, ids[0] if ids else None)

    async def close(self) -> None:
        """End every request."""
        await background_tasks.end(self._running)

    def _keep(self, folder: Folder, order: GuardOrder | None) -> None:
        standing = self._standing.get(folder)
        if order is None and standing is None:
            self._begin(folder, None, LOOK_AGAIN_SECONDS)
        elif order is None and standing is not None and standing.checkpoint:
            self._begin(folder, GuardOrder(standing.lease), AGAIN_SECONDS)
        elif order is not None and order != standing:
            self._begin(folder, order, AGAIN_SECONDS)

    def _begin(self, folder: Folder, order: GuardOrder | None, seconds: float) -> None:
        """Write an order, or without one read the bucket's, unless the same was tried less than `seconds` ago."""
        now = self._clock.monotonic()
        tried = self._tried.get(folder)
        if tried is not None and tried[1] == order and now - tried[0] < seconds:
            return
        self._tried[folder] = now, order
        (self._reading.add if order is None else self._reading.discard)(folder)
        work = self._read(folder) if order is None else self._write(folder, order, self._clock.now())
        self._running[folder] = self._spawn(work)

    async def _write(self, folder: Folder, order: GuardOrder, sent_at: datetime) -> None:
        # An order that takes another back is in no hurry, and must not delay a new one.
        for left in reversed(range(TRIES if order.checkpoint is not None else 1)):
            try:
                body = json.dumps(_note(order, sent_at), separators=(",", ":")).encode()
                await self._client(folder).write(f"{folder.path}/{ORDER}", body)
                break
            except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
                _log_failure(folder, error)
                if not left or not isinstance(error, BucketError):
                    return
            await self._clock.sleep(RETRY_SECONDS)
            sent_at = self._clock.now()
        self._standing[folder] = order
        self._tried.pop(folder, None)
        if order.checkpoint is not None:
            self.written = {**self.written, order.checkpoint: sent_at}
        log.info("guard.ordered", lease=order.lease, checkpoint=order.checkpoint or "")

    async def _read(self, folder: Folder) -> None:
        """Learn which order the bucket has, after a start of this program."""
        try:
            content = await self._client(folder).read(f"{folder.path}/{ORDER}", MOST_BYTES)
        except BucketTooLarge:
            content = b""
        except Exception as error:  # noqa: BLE001 - as above
            _log_failure(folder, error)
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
    """Return the order in a note; an unreadable note asks for nothing."""
    try:
        note = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        note = {}
    note = note if isinstance(note, dict) else {}
    lease, checkpoint = note.get("lease"), note.get("checkpoint")
    return GuardOrder(
        lease if isinstance(lease, str) else "", checkpoint if isinstance(checkpoint, str) and checkpoint else None
    )


def _log_failure(folder: Folder, error: Exception) -> None:
    said = error.code if isinstance(error, BucketError) else type(error).__name__
    log.warning("guard.unordered", bucket=str(folder.place), code=said)
