"""The live feed: the newest document, made once a cycle while somebody watches, and streams that push it.

1. A document is made when it is asked for, at most once a second; nothing is made for nobody.
2. A stream never queues: a slow client gets the newest document when it is ready to read, and skips those between.
3. A stream says something every ten seconds, so that a client knows within thirty that the daemon is gone.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from agent.web.daemon_port import Orders, Process
from agent.web.feed import fleet_document, read_model

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FRESH_SECONDS = 1.0
LOOK_SECONDS = 1.0
LOOKS_A_BEAT = 10
MOST_STREAMS = 16
"""Open streams at a time; one more ends the oldest, as connections do."""


@dataclass(frozen=True, slots=True)
class Made:
    """One document: its bytes as JSON, when it was made in monotonic seconds, and its content without instants."""

    body: bytes
    made_at: float
    fleet: read_model.Fleet
    content: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a stream: event `fleet` with a document, or event `beat` with its instants."""

    event: str
    body: bytes


class LiveFeed:
    """Makes documents of an App and wakes the streams after each cycle."""

    def __init__(self, app: Orders, process: Process | None = None) -> None:
        """Read `app`; without a `process` no job is late and no configuration refused."""
        self._app = app
        self._process = process
        self._newest: Made | None = None
        self._making = asyncio.Lock()
        self._streams: list[asyncio.Event] = []
        self._is_closed = False

    def changed(self) -> None:
        """Wake the streams: a cycle has ended, or an order was carried out."""
        self._newest = None
        for waiting in self._streams:
            waiting.set()

    def close(self) -> None:
        """End every stream."""
        self._is_closed = True
        for waiting in self._streams:
            waiting.set()

    async def newest(self) -> Made:
        """Return the document: the last one if it is less than a second old and nothing changed.

        Raises:
            LedgerError: the ledger cannot be read.
        """
        async with self._making:
            made, now = self._newest, self._app.clock.monotonic()
            if made is None or not 0 <= now - made.made_at < FRESH_SECONDS:
                made = self._newest = await self._make(now)
            return made

    async def messages(self) -> AsyncGenerator[Message | None, None]:
        """Yield the document at once, then after each change, or a beat where only the time has changed.

        None is yielded each second between: whoever writes the messages looks then whether the client is still there.
        """
        waiting = asyncio.Event()
        self._streams.append(waiting)
        if len(self._streams) > MOST_STREAMS:
            self._end(self._streams[0])
        last = b""
        try:
            while waiting in self._streams and not self._is_closed:
                waiting.clear()
                made = await self.newest()
                is_news, last = made.content != last, made.content
                yield Message("fleet", made.body) if is_news else Message("beat", _beat(made.fleet))
                for _ in range(LOOKS_A_BEAT):
                    if await _is_woken(waiting):
                        break
                    yield None
        finally:
            self._end(waiting)

    def _end(self, stream: asyncio.Event) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
            stream.set()

    def sources(self) -> fleet_document.Sources:
        """Return what a document or the page is made from now."""
        app, process, now = self._app, self._process, self._app.clock.now()
        late, refused = (process.late(), process.refused) if process is not None else ((), ())
        known = app.ledger.recollection(now)
        return fleet_document.Sources(
            app.rules, app.config, known, app.seen, now, app.notices(), tuple(late), tuple(refused)
        )

    async def _make(self, monotonic: float) -> Made:
        fleet = await fleet_document.document(self.sources(), await self._app.ledger.reader())
        return Made(msgspec.json.encode(fleet), monotonic, fleet, _content(fleet))


def _content(fleet: read_model.Fleet) -> bytes:
    """Return a document without the instants that change in every cycle."""
    replace = msgspec.structs.replace
    slots = [
        replace(slot, decision=replace(slot.decision, at=EPOCH)) if slot.decision is not None else slot
        for slot in fleet.slots
    ]
    markets = [replace(market, listed_at=None) for market in fleet.markets]
    return msgspec.json.encode(replace(fleet, as_of=EPOCH, last_cycle_at=None, slots=slots, markets=markets))


def _beat(fleet: read_model.Fleet) -> bytes:
    return msgspec.json.encode(read_model.Beat(fleet.as_of, fleet.last_cycle_at, fleet.is_stale))


async def _is_woken(waiting: asyncio.Event) -> bool:
    """Wait for a change, at most `LOOK_SECONDS`; return whether one came."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            return await waiting.wait()
    except TimeoutError:
        return False
