"""The live feed: the newest document, made once a cycle while there are readers, and streams that push it.

1. A document is made at a request, at most once a second. Without readers none is made.
2. A stream never queues. A slow client gets the newest document when it is ready to read, and misses older ones.
3. A stream sends something every ten seconds, so that a client knows within thirty that the daemon is gone.
4. A document is sent after a change (agent/web/feed/change_mark.py) and once a minute. Beats between have the money.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from agent.ledger.reader import Reader
from agent.web.daemon_port import Orders, Process
from agent.web.feed import change_mark, fleet_document, read_model
from agent.web.feed.fleet_document import Sources
from agent.web.feed.month_savings import MonthSavings

T = TypeVar("T")

FRESH_SECONDS = 1.0
LOOK_SECONDS = 1.0
LOOKS_A_BEAT = 10
DOCUMENT_SECONDS = 60.0
"""The greatest age, at a client, of figures that time alone changes. Money is newer, because every beat has it."""
MOST_TRIES = 10
"""The most attempts to read the ledger without a write in between."""
COMMIT_SECONDS = 2.0
"""The longest wait for a commit."""
MOST_STREAMS = 16
"""The most open streams. One more ends the oldest, as with connections."""
GIVES_WAY = read_model.Refusal(
    "too_many_streams",
    f"{MOST_STREAMS} readers of the feed are open and one more came, so this one ended: close one and open this again",
)


@dataclass(frozen=True, slots=True)
class MadeDocument:
    """One document: its bytes as JSON, its instant in monotonic seconds, and the mark of its content."""

    body: bytes
    made_at: float
    fleet: read_model.Fleet
    mark: bytes

    def is_news_after(self, sent: "MadeDocument | None") -> bool:
        """Return whether a client with the document `sent` must get this one."""
        return sent is None or self.mark != sent.mark or self.made_at - sent.made_at >= DOCUMENT_SECONDS


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stream: `fleet` with a document, `beat` with its instants and money, or at last `refused`."""

    event: str
    body: bytes


class LiveFeed:
    """Makes documents of an App and wakes the streams after each cycle."""

    def __init__(self, app: Orders, process: Process | None = None) -> None:
        """Read `app`. Without a `process` no job is late and no configuration is refused."""
        self._app = app
        self._process = process
        self._newest: MadeDocument | None = None
        self._changes = 0
        self._making = asyncio.Lock()
        self._streams: list[asyncio.Event] = []
        self._is_closed = False
        self._savings = MonthSavings(app, self.changed)

    def changed(self) -> None:
        """Wake the streams: a cycle has ended, or an order was carried out."""
        self._newest = None
        self._changes += 1
        for waiting in self._streams:
            waiting.set()

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        for waiting in self._streams:
            waiting.set()

    async def newest(self) -> MadeDocument:
        """Return the document: the last one if it is less than a second old and nothing changed.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        async with self._making:
            version, now = self._newest, self._app.clock.monotonic()
            if version is None or not 0 <= now - version.made_at < FRESH_SECONDS:
                changes = self._changes
                version = await self._make(now)
                # A change during the reading may be missing in this document, so the next reader gets a new one.
                self._newest = version if changes == self._changes else None
            return version

    async def messages(self) -> AsyncGenerator[Message | None, None]:
        """Yield the document at once and after each change, else a beat every ten seconds.

        In between, yield None each second, so that the writer can check whether the client is still connected.
        A stream that ends for another one sends a last `refused`; else its client would think that the daemon is gone.
        """
        waiting = asyncio.Event()
        self._streams.append(waiting)
        if len(self._streams) > MOST_STREAMS:
            self._end(self._streams[0])
        sent: MadeDocument | None = None
        try:
            while waiting in self._streams and not self._is_closed:
                waiting.clear()
                version = await self.newest()
                if version.is_news_after(sent):
                    sent = version
                    yield Message("fleet", version.body)
                else:
                    yield Message("beat", _beat(version.fleet))
                for _ in range(LOOKS_A_BEAT):
                    if await _is_woken(waiting):
                        break
                    yield None
            if not self._is_closed:
                yield Message("refused", msgspec.json.encode(GIVES_WAY))
        finally:
            self._end(waiting)

    def _end(self, stream: asyncio.Event) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
            stream.set()

    async def of_one_version(self, made_from: Callable[[Sources, Reader], Awaitable[T]]) -> T:
        """Return the result of `made_from` with memory and rows of one version of the ledger.

        With two versions a span may be counted twice, so a commit during the reading starts it again. After
        `MOST_TRIES` tries, or if the disk hangs, the result may mix versions.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        ledger = self._app.ledger
        reader = await ledger.reader()
        with contextlib.suppress(TimeoutError):
            for _ in range(MOST_TRIES - 1):
                async with asyncio.timeout(COMMIT_SECONDS):
                    version = await ledger.settled()
                document = await made_from(self._sources(), reader)
                if ledger.is_still_at(version):
                    return document
        return await made_from(self._sources(), reader)

    def _sources(self) -> Sources:
        app, process, now = self._app, self._process, self._app.clock.now()
        late, refused = (process.late(), process.refused) if process is not None else ((), ())
        known = app.ledger.recollection(now)
        return Sources(
            app.rules,
            app.config,
            known,
            app.seen,
            now,
            app.notices(),
            tuple(late),
            tuple(refused),
            self._savings.last(),
        )

    async def _make(self, monotonic: float) -> MadeDocument:
        fleet = await self.of_one_version(fleet_document.document)
        return MadeDocument(msgspec.json.encode(fleet), monotonic, fleet, change_mark.mark(fleet))


def _beat(fleet: read_model.Fleet) -> bytes:
    return msgspec.json.encode(read_model.Beat(fleet.as_of, fleet.last_cycle_at, fleet.is_stale, fleet.money))


async def _is_woken(waiting: asyncio.Event) -> bool:
    """Wait for a change, at most `LOOK_SECONDS`. Return whether one came."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await waiting.wait()
    except TimeoutError:
        return False
