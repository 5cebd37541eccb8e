"""HTTP to a market: deadlines, reads tried again, writes sent once.

Invariants:
1. A write leaves at most once: its body can be read a single time, so nothing below us can send it again; it travels on
   a fresh connection, so no kept-alive socket that the server is closing eats it; redirects are not followed.
2. A read that fails is tried again with a jittered back-off, then raises `Unavailable`.
3. The deadline holds on the wall and on the injected clock: in a rehearsal a slow answer costs no wall time.
4. The key stands in one header; it is in no repr, log line or error.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp
import yarl

from agent import __version__
from agent import clock as clocks
from agent.markets import errors
from agent.markets import pace as pacing

DEADLINE_SECONDS = 30.0
ATTEMPTS = 3
BACKOFF_SECONDS = 0.25
"""The first wait before a read is tried again, doubled each time; small, since a decision waits for the answer."""

SILENCE_SECONDS = 1.5
"""A stream that says nothing for so long has told what there is."""

MAX_BYTES = 64 * 2**20
"""The whole market of 13,000 full rows is 31 MB; twice that is no answer, it is an attack or a mistake."""

_HTTP_FORBIDDEN = 403
_HTTP_TIMEOUT = 408
_HTTP_SERVER_ERROR = 500

Key = Callable[[], str]
"""Gives the bearer key when it is needed, so that nothing else holds it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: which lane it travels on, method, path with its encoded query, and JSON body.

    The body may hold secrets of a workload, so no repr shows it.
    """

    lane: str
    method: str
    path: str
    body: bytes | None = field(default=None, repr=False)
    is_urgent: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def is_ok(self) -> bool:
        """Whether the status is 2xx; the body may still refuse."""
        return 200 <= self.status < 300  # noqa: PLR2004

    @property
    def looks_like_json(self) -> bool:
        """Whether the body begins as a JSON object or list."""
        return self.body.lstrip()[:1] in {b"{", b"["}


class _Lost(Exception):
    """No usable answer; the text says why without any secret."""


class _TooLarge(_Lost):
    """The answer passed the bound."""


class _NeverLeft(Exception):
    """There was no connection."""


class Transport:
    """The HTTP side of one market."""

    def __init__(  # noqa: PLR0913 - each is a decision of the composition root
        self,
        base_url: str,
        key: Key,
        clock: clocks.Clock,
        pace: pacing.Pace,
        jitter: Callable[[], float],
        *,
        deadline: float = DEADLINE_SECONDS,
        attempts: int = ATTEMPTS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """Take the market's address, its key and time; `jitter` returns a number from 0 to 1."""
        self._base_url = base_url.rstrip("/")
        self._key = key
        self._clock = clock
        self._pace = pace
        self._jitter = jitter
        self._deadline = deadline
        self._attempts = attempts
        self._max_bytes = max_bytes
        self._reads: aiohttp.ClientSession | None = None
        self._writes: aiohttp.ClientSession | None = None

    async def read(self, call: Call) -> Reply:
        """Return the answer to a question, asking again while the failure looks transient.

        Raises: Unavailable, Malformed (an endless answer), Throttled (a closed lane), Unauthorized (no usable key).
        """
        failure = ""
        for attempt in range(self._attempts):
            if attempt:
                await self._clock.sleep(BACKOFF_SECONDS * 2 ** (attempt - 1) * (0.5 + self._jitter()))
            await self._pace.turn(call.lane, is_urgent=call.is_urgent)
            try:
                reply = await self._send(self._session_for_reads(), call, call.body)
            except _TooLarge as error:
                raise errors.Malformed(f"{_place(call)}: {error}") from None
            except (_Lost, _NeverLeft) as error:
                failure = str(error)
                continue
            if not _is_transient(reply):
                return reply
            failure = f"it answered {reply.status}"
        raise errors.Unavailable(f"{_place(call)}: {failure}, {self._attempts} times; check the market's status page.")

    async def fetch(self, url: str, most_bytes: int) -> Reply:
        """Return what lies at an address that the market gave, asked for without the key; longer is cut off.

        Raises: Unavailable, Malformed (no address of the web).
        """
        place = yarl.URL(url) if _is_web(url) else None
        if place is None:
            raise errors.Malformed("The market gave an address that is none of the web; nothing is fetched.")
        try:
            session = self._session_for_reads()
            async with session.get(place, allow_redirects=False) as response:
                content = await response.content.read(0)
                while len(content) < most_bytes and (more := await response.content.read(most_bytes - len(content))):
                    content += more
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise errors.Unavailable(f"a file of the market cannot be fetched ({type(error).__name__})") from None
        return Reply(response.status, response.headers, content)

    async def tail(self, call: Call, most_bytes: int) -> Reply:
        """Return what a stream that never ends has to say now: it is left when it falls silent or says too much.

        Raises: Unavailable, Throttled (a closed lane), Unauthorized (no usable key).
        """
        await self._pace.turn(call.lane, is_urgent=call.is_urgent)
        url = yarl.URL(self._base_url + call.path, encoded=True)
        headers = self._headers(None, has_body=False) | {"Accept": "text/event-stream"}
        content, told = b"", None
        try:
            async with self._session_for_reads().get(url, headers=headers, allow_redirects=False) as response:
                told = response.status, response.headers
                while len(content) < most_bytes and (more := await _soon(response)):
                    content += more
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if told is None or not content:
                raise errors.Unavailable(f"{_place(call)}: no answer ({type(error).__name__})") from None
        return Reply(*told, content)

    async def write(self, call: Call) -> Reply:
        """Send an order once and return the answer, whatever its status.

        Raises: Ambiguous (no usable answer), Unreachable (no connection, so nothing left), Throttled (the lane is
            closed, nothing was sent), Unauthorized (no usable key, nothing was sent).
        """
        await self._pace.turn(call.lane, is_urgent=call.is_urgent)
        body = call.body or b"{}"
        try:
            return await self._send(self._session_for_writes(), call, _single_use(body), len(body))
        except _Lost as error:
            raise errors.Ambiguous(f"{_place(call)}: {error}; its listing will tell whether it was done.") from None
        except _NeverLeft as error:
            raise errors.Unreachable(f"{_place(call)}: {error}; nothing was sent.") from None

    async def close(self) -> None:
        """Let go of every connection."""
        for session in (self._reads, self._writes):
            if session is not None:
                await session.close()
        self._reads = self._writes = None

    async def _send(
        self,
        session: aiohttp.ClientSession,
        call: Call,
        body: bytes | AsyncIterator[bytes] | None,
        length: int | None = None,
    ) -> Reply:
        url = yarl.URL(self._base_url + call.path, encoded=True)
        headers = self._headers(length, has_body=body is not None)
        began = self._clock.monotonic()
        try:
            async with session.request(call.method, url, data=body, headers=headers, allow_redirects=False) as response:
                content = await self._bounded(response)
        except aiohttp.ClientConnectorError as error:
            raise _NeverLeft(f"no connection ({type(error).__name__})") from None
        except TimeoutError:
            raise _Lost(f"no answer within {self._deadline:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _Lost(f"the connection broke ({type(error).__name__})") from None
        if self._clock.monotonic() - began >= self._deadline:
            raise _Lost(f"no answer within {self._deadline:g} s")
        return Reply(response.status, response.headers, content)

    async def _bounded(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > self._max_bytes:
                response.close()
                raise _TooLarge(f"its answer is longer than {self._max_bytes} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def _headers(self, length: int | None, *, has_body: bool) -> dict[str, str]:
        key = self._key().strip()
        if not key or not key.isascii() or not key.isprintable():
            raise errors.Unauthorized("The key is empty or no key at all; check its credential file.")
        headers = {"Authorization": f"Bearer {key}"}
        if has_body:
            headers["Content-Type"] = "application/json"
        if length is not None:
            # Without a length a body from a generator goes out chunked.
            headers["Content-Length"] = str(length)
        return headers

    def _session_for_reads(self) -> aiohttp.ClientSession:
        if self._reads is None:
            self._reads = self._session(aiohttp.TCPConnector(limit=8, keepalive_timeout=20))
        return self._reads

    def _session_for_writes(self) -> aiohttp.ClientSession:
        if self._writes is None:
            self._writes = self._session(aiohttp.TCPConnector(limit=8, force_close=True))
        return self._writes

    def _session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._deadline),
            headers={"User-Agent": f"gpubid/{__version__}", "Accept": "application/json"},
            read_bufsize=2**18,
        )


def _is_web(url: str) -> bool:
    try:
        parts = yarl.URL(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.host) and parts.user is None


async def _soon(response: aiohttp.ClientResponse) -> bytes:
    """Return what a stream says next, or nothing when it ends or falls silent."""
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await response.content.readany()
    except TimeoutError:
        return b""


async def _single_use(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _is_transient(reply: Reply) -> bool:
    # Bursts are answered by the proxy in front of the market with a 403 page; a market's own 403 is JSON.
    is_page = reply.status == _HTTP_FORBIDDEN and not reply.looks_like_json
    return is_page or reply.status == _HTTP_TIMEOUT or reply.status >= _HTTP_SERVER_ERROR


def _place(call: Call) -> str:
    return f"{call.method} {call.path.partition('?')[0]}"
