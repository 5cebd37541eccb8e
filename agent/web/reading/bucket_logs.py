"""The whole output of guarded work, from its bucket: the pieces that its guard carried there.

Invariants:
1. A stranger may have written a piece: it is bounded before and after it is unpacked, and cleaned before it is shown.
2. If a bucket does not answer, the result says so; a log that is kept beside the ledger is shown all the same.
"""

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from agent.buckets.bucket_client import BucketClient
from agent.buckets.bucket_errors import BucketError
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_terms import Bucket
from agent.domain.work.workload import Workload
from agent.ledger.memory import Recollection
from agent.ledger.reader import Reader
from agent.markets import text

FOLDER = "logs"
SUFFIX = ".gz"
MOST_PIECES = 64
"""Pieces that are read for one answer, the newest ones."""
MOST_NAMES = 50_000
MOST_PACKED, MOST_UNPACKED = 4 * 1024 * 1024, 4 * 1024 * 1024
MOST_LINE = 2_000
START_LENGTH = 10
"""Characters of a piece's name that are the same for one start of the guard."""
CLOCK_ERROR = timedelta(minutes=10)
"""By how much a host's clock may be behind: it dates the starts of its guard."""
GZIP = zlib.MAX_WBITS | 16
LIVE = frozenset({LeaseState.STARTING, LeaseState.RUNNING})


@dataclass(frozen=True, slots=True)
class BucketLog:
    """The folder of one lease's log. With `is_running` the newest start is the present one."""

    lease: Lease
    place: Bucket
    folder: str
    is_running: bool


async def of_lease(
    reader: Reader, known: Recollection, workloads: Iterable[Workload], fleet_id: str, lease_id: str
) -> BucketLog | None:
    """Return where the log of a lease is, open or ended; None if its workload's guard has no bucket that we read."""
    lease = next(iter(await reader.leases(ids=[lease_id])), None)
    return None if lease is None else _place(lease, known, workloads, fleet_id)


async def before_the_present(
    reader: Reader, known: Recollection, workloads: Iterable[Workload], fleet_id: str, slot: str
) -> BucketLog | None:
    """Return where the newest log of a slot is that is not of its present run."""
    rows = [lease for lease in await reader.leases() if slot in {str(lease.slot), lease.slot.workload, lease.lease_id}]
    earlier = [lease for lease in rows if lease.state not in LIVE or lease.runs > 1]
    return next((found for lease in earlier if (found := _place(lease, known, workloads, fleet_id)) is not None), None)


def _place(lease: Lease, known: Recollection, workloads: Iterable[Workload], fleet_id: str) -> BucketLog | None:
    guard = next((work.guard for work in workloads if work.name == lease.slot.workload), None)
    run = next((each for each in known.guard_runs if (each.slot, each.run) == (lease.slot, lease.guard_run)), None)
    if guard is None or guard.bucket is None or run is None:
        return None
    folder = f"{run.folder(fleet_id)}/{FOLDER}/{lease.intent_id}"
    return BucketLog(lease, guard.bucket, folder, lease.state in LIVE)


async def read(
    wanted: BucketLog, lines: int, secret: Callable[[str], str], *, is_previous: bool
) -> tuple[list[str], str]:
    """Return the last lines in the bucket, and why there are none; with `is_previous` without the present start."""
    try:
        client = BucketClient(wanted.place, secret(wanted.place.credential))
        names = sorted([row.name async for row in client.listed(wanted.folder, MOST_NAMES)])
        if is_previous and wanted.is_running and names:
            names = _before(wanted.lease, names)
        return await _last(client, names, lines), ""
    except BucketError as error:
        return [], str(error)
    except Exception as error:  # noqa: BLE001 - a key that is missing or wrong, and whatever a store may do
        return [], f"{wanted.place} cannot be read ({type(error).__name__})"


def shown(wanted: BucketLog, lines: Sequence[str], at: str) -> dict[str, Any]:
    """Return lines of a bucket as JSON."""
    kept = {"at": at, "moment": "bucket", "run": wanted.lease.runs}
    return {"slot": str(wanted.lease.slot), "lease": wanted.lease.lease_id, "lines": list(lines), "kept": kept}


def _before(lease: Lease, names: Sequence[str]) -> list[str]:
    """Return the pieces of earlier starts than the present one, which may have carried none yet.

    It has where there are as many starts as stretches of running, or where the newest began in the present one.
    """
    starts = sorted({_start(name) for name in names})
    newest, since = starts[-1], lease.run_since or lease.state_since
    is_of_now = newest.isdecimal() and int(newest) >= (since - CLOCK_ERROR).timestamp()
    present = newest if len(starts) >= lease.runs or is_of_now else None
    return [name for name in names if _start(name) != present]


async def _last(client: BucketClient, names: Sequence[str], lines: int) -> list[str]:
    raw = b""
    for name in list(reversed(names))[:MOST_PIECES]:
        packed = await client.read(name, MOST_PACKED) if name.endswith(SUFFIX) else None
        raw = _unpacked(packed or b"") + raw
        if raw.count(b"\n") > lines:
            break
    return [text.clean(line, MOST_LINE) for line in raw.decode("utf-8", "replace").splitlines()[-lines:]]


def _unpacked(packed: bytes) -> bytes:
    """Return the unpacked bytes, as far as they can be read, and bounded in size."""
    try:
        return zlib.decompressobj(GZIP).decompress(packed, MOST_UNPACKED)
    except zlib.error:
        return b""


def _start(name: str) -> str:
    return name.rpartition("/")[2][:START_LENGTH]
