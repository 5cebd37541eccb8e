"""One bucket in memory: guards write to it directly, the daemon through its own client, each through the weather."""

import asyncio
import hashlib
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Protocol
from unittest import mock

from obstore import exceptions

from agent.buckets import bucket_client
from agent.clock import SteppedClock
from agent.config import guard_archive
from agent.guard import bucket_notes
from agent.guard.object_store import Fetched, Listed, Unreachable
from tests.disasters.exchange import Process, Weather, Witness
from tests.disasters.story import BUCKET, Strike
from tests.support.memory_store import MemoryStore

MOST_WAITED_SECONDS = 1.0
"""What takes longer on the loop's own clock than this keeps the whole program waiting: then time goes on."""
NO_SUCH_KEY = "<Error><Code>NoSuchKey</Code></Error>"
PROGRAM = b"the guard"
Page = list[dict[str, Any]]
_PLACES = {
    "beat-": "beat",
    "end.json": "end",
    "ended-": "end",
    "deadman-": "switch",
    "acceptance-": "check",
    "next-": "next",
}


class Teller(Witness, Protocol):
    """Receives strikes, and answers which process acts."""

    @property
    def acting(self) -> Process | None:
        """Return the process whose turn it is."""


class Bucket:
    """The stored objects, and the folders that do not answer or are slow. A folder belongs to a workload."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self._away: dict[str, float] = {}
        self._slow: dict[str, tuple[float, float]] = {}
        self.failed_at: dict[str, float] = {}
        """When each folder last failed the daemon."""
        self.ordered: dict[str, float] = {}
        """When the bucket last took each order for a checkpoint, by its id."""

    def leave(self, folder: str, until: float) -> None:
        """Do not answer for a while."""
        self._away[folder] = until

    def slow_down(self, folder: str, until: float, seconds: float) -> None:
        """Take so many seconds for each answer, for a while."""
        self._slow[folder] = until, seconds

    def calm(self) -> None:
        """Answer at once again."""
        self._away.clear()
        self._slow.clear()

    def is_away(self, key: str, now: float) -> bool:
        """Return whether the folder of a key does not answer."""
        return self._away.get(key.partition("/")[0], -math.inf) > now

    def delay(self, key: str, now: float) -> float:
        """Return how long an answer takes."""
        until, seconds = self._slow.get(key.partition("/")[0], (-math.inf, 0.0))
        return seconds if until > now else 0.0


class GuardSide:
    """The bucket as a guard asks it."""

    def __init__(self, bucket: Bucket, now: Callable[[], float], is_cut_off: Callable[[], bool]) -> None:
        self._bucket = bucket
        self._now = now
        self._is_cut_off = is_cut_off

    def get(self, key: str, most_bytes: int) -> Fetched | None:
        return self._store(key).get(key, most_bytes)

    def put(self, key: str, body: bytes, *, tag: str | None = None, is_new: bool = False) -> bool:
        return self._store(key).put(key, body, tag=tag, is_new=is_new)

    def list(self, prefix: str, most: int) -> list[Listed]:
        return self._store(prefix).list(prefix, most)

    def delete(self, key: str) -> None:
        self._store(key).delete(key)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"a scripted guard does not {name}")

    def _store(self, key: str) -> MemoryStore:
        if self._is_cut_off() or self._bucket.is_away(key, self._now()):
            raise Unreachable("no answer (a story)")
        return self._bucket.store


class DaemonSide:
    """The bucket as the library of the daemon's client asks it: one folder of it."""

    def __init__(self, gate: "Gate", prefix: str) -> None:
        self._gate = gate
        self._prefix = prefix
        self._process = gate.acting()

    async def get_async(self, path: str) -> Any:
        key = self._key(path)
        strike = await self._gate.passed(key, path, self._process)
        found = self._gate.bucket.store.objects.get(key)
        if found is None or (strike is not None and strike.fault == "missing"):
            raise FileNotFoundError(NO_SUCH_KEY)
        return _answer(_altered(found.body, strike))

    async def put_async(self, path: str, content: bytes, *, mode: str, use_multipart: bool) -> None:
        del use_multipart
        key = self._key(path)
        strike = await self._gate.passed(key, path, self._process)
        is_written = self._gate.written(key, path, bytes(content), is_new=mode == "create")
        if strike is not None and strike.fault == "death_after" and self._process is not None:
            raise self._process.die()
        if strike is not None and strike.fault == "lost_after":
            raise exceptions.GenericError("the connection broke (a story)")
        if not is_written:
            raise exceptions.AlreadyExistsError(path)

    async def _pages(self, folder: str, chunk_size: int) -> AsyncIterator[Page]:
        key = self._key(folder)
        await self._gate.passed(key, folder, self._process)
        objects, start = self._gate.bucket.store.objects, len(self._prefix) + 1
        rows = [_row(each[start:], objects[each].body) for each in sorted(objects) if each.startswith(f"{key}/")]
        for at in range(0, len(rows), chunk_size):
            yield rows[at : at + chunk_size]

    async def list_with_delimiter_async(self, folder: str) -> dict[str, list[str]]:
        key = self._key(folder)
        await self._gate.passed(key.rstrip("/"), folder.rstrip("/"), self._process)
        inner = [each.removeprefix(key) for each in self._gate.bucket.store.objects if each.startswith(key)]
        folders = sorted({each.split("/", 1)[0] for each in inner if "/" in each})
        return {"common_prefixes": [f"{folder}{name}" for name in folders]}

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}"

    def list(self, folder: str, chunk_size: int) -> AsyncIterator[Page]:
        return self._pages(folder, chunk_size)


class Gate:
    """Lets the daemon's calls through as the story has it."""

    def __init__(
        self, bucket: Bucket, clock: SteppedClock, weather: Weather, teller: Teller, advance: Callable[[float], None]
    ) -> None:
        self.bucket = bucket
        self._clock = clock
        self._weather = weather
        self._teller = teller
        self._advance = advance

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Let the daemon's own client reach this bucket, and no other, while the block runs."""
        signed = SimpleNamespace(sign=lambda _store, _method, path, _for: f"https://bucket.invalid/{path}")
        with (
            mock.patch.object(bucket_client, "S3Store", lambda _, *, prefix, **__: DaemonSide(self, prefix)),
            mock.patch.object(bucket_client, "obstore", signed),
            mock.patch.object(guard_archive, "packed", return_value=PROGRAM),
        ):
            yield

    def acting(self) -> Process | None:
        """Return the process that asks."""
        return self._teller.acting

    def written(self, key: str, path: str, content: bytes, *, is_new: bool) -> bool:
        """Store an object of the daemon. Return False if it must be new and exists already."""
        order = bucket_notes.parsed(content).get("checkpoint") if place(path) == "order" else None
        if isinstance(order, str):
            self.bucket.ordered[order] = self._clock.time()
        return self.bucket.store.put(key, content, is_new=is_new)

    async def passed(self, key: str, path: str, process: Process | None) -> Strike | None:
        """Wait for the time of an answer, and raise the error of the weather. Return the strikes of the answer."""
        if process is not None:
            process.check()
        strike = self._weather.next(BUCKET, place(path))
        if strike is not None:
            self._teller.struck(strike, None)
        fault = strike.fault if strike is not None else ""
        if fault == "death_before" and process is not None:
            raise process.die()
        await self._waited(self.bucket.delay(key, self._clock.time()) + {"slow": 3.0, "too_slow": 12.0}.get(fault, 0.0))
        self._advance(self._clock.time())
        if fault == "refused":
            self._fail(key)
            raise exceptions.PermissionDeniedError("403 (a story)")
        if fault in {"away", "too_slow"} or self.bucket.is_away(key, self._clock.time()):
            self._fail(key)
            raise exceptions.GenericError("no answer (a story)")
        if fault or self.bucket.delay(key, self._clock.time()):
            self._fail(key)
        return strike

    def _fail(self, key: str) -> None:
        self.bucket.failed_at[key.partition("/")[0]] = self._clock.time()

    async def _waited(self, seconds: float) -> None:
        until, loop = self._clock.time() + seconds, asyncio.get_running_loop()
        latest = loop.time() + MOST_WAITED_SECONDS
        while self._clock.time() < until and loop.time() < latest:  # noqa: ASYNC110 - no event says that time went on
            await asyncio.sleep(0.05)
        if self._clock.time() < until:
            await self._clock.sleep(until - self._clock.time())


def place(path: str) -> str:
    """Return the kind of a path in a run's folder, by the name that stories use."""
    name = path.rpartition("/")[2]
    if path.startswith("guard/") or name in {"claim.json", "run.json"} or name.startswith("advice-"):
        return "program"
    known = next((told for start, told in _PLACES.items() if name.startswith(start)), "")
    return known or {"order.json": "order", "alive.json": "alive"}.get(name, "checkpoint")


def _altered(body: bytes, strike: Strike | None) -> bytes:
    fault = strike.fault if strike is not None else ""
    if fault == "truncated":
        return body[: len(body) // 2]
    if fault == "enormous":
        return body + b" " * (5 << 20)
    return b"<html><body>nginx</body></html>" if fault == "junk" else body


def _answer(body: bytes) -> Any:
    async def whole() -> bytes:
        return body

    return SimpleNamespace(meta={"size": len(body)}, bytes_async=whole)


def _row(path: str, body: bytes) -> dict[str, Any]:
    return {"path": path, "size": len(body), "e_tag": f'"{md5(body)}"'}


def md5(body: bytes) -> str:
    """Return the tag that a store gives an object."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()
