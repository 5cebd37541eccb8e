"""One HTTP exchange: a request as a value goes out, status, headers and body come back.

Invariants:
1. A write leaves at most once: its body can be read a single time, so nothing below us can send it again; it travels on
   a fresh connection, so no kept-alive socket that the server is closing eats it; redirects are not followed.
2. A failure says whether the request may have left: `NeverLeft` proves that it did not.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
import yarl

from agent import __version__

SILENCE_SECONDS = 1.5
"""A stream that says nothing for so long has told what there is."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is ready to leave; neither its headers, which hold the key, nor its body are in a repr."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    is_write: bool = False


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


class Lost(Exception):
    """No usable answer; the text says why without any secret."""


class TimedOut(Lost):
    """No answer came in time."""


class TooLarge(Lost):
    """The answer passed the bound."""


class NeverLeft(Exception):
    """There was no connection."""


class Exchange(Protocol):
    """What carries requests to a market: a network, or a simulated market in the same process."""

    async def send(self, request: Request, most_bytes: int) -> Reply:
        """Send a request once and return the whole answer.

        Raises: Lost, TimedOut, TooLarge, NeverLeft.
        """
        ...

    async def first(self, request: Request, most_bytes: int) -> Reply:
        """Return the first bytes of an answer; what is longer is cut off.

        Raises: Lost, TimedOut, NeverLeft.
        """
        ...

    async def tail(self, request: Request, most_bytes: int) -> Reply:
        """Return what a stream that never ends says now: it is left when it falls silent or says too much.

        Raises: Lost, TimedOut, NeverLeft: nothing came.
        """
        ...

    async def close(self) -> None:
        """Let go of every connection."""
        ...


class HttpExchange:
    """The network, by aiohttp."""

    def __init__(self, deadline: float) -> None:
        """Wait for an answer at most `deadline` seconds of the wall."""
        self._deadline = deadline
        self._reads: aiohttp.ClientSession | None = None
        self._writes: aiohttp.ClientSession | None = None

    async def send(self, request: Request, most_bytes: int) -> Reply:
        """Send a request once and return the whole answer."""
        session = self._session_for_writes() if request.is_write else self._session_for_reads()
        body = _single_use(request.body or b"") if request.is_write else request.body
        url = yarl.URL(request.url, encoded=True)
        try:
            async with session.request(
                request.method, url, data=body, headers=request.headers, allow_redirects=False
            ) as response:
                return Reply(response.status, response.headers, await _bounded(response, most_bytes))
        except (aiohttp.ClientError, OSError) as error:
            raise _in_our_words(error) from None

    async def first(self, request: Request, most_bytes: int) -> Reply:
        """Return the first bytes of an answer; what is longer is cut off."""
        content = b""
        try:
            async with self._session_for_reads().get(request.url, allow_redirects=False) as response:
                while len(content) < most_bytes and (more := await response.content.read(most_bytes - len(content))):
                    content += more
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _in_our_words(error) from None
        return Reply(response.status, response.headers, content)

    async def tail(self, request: Request, most_bytes: int) -> Reply:
        """Return what a stream that never ends says now: it is left when it falls silent or says too much."""
        content, told = b"", None
        url = yarl.URL(request.url, encoded=True)
        try:
            async with self._session_for_reads().get(url, headers=request.headers, allow_redirects=False) as response:
                told = response.status, response.headers
                while len(content) < most_bytes and (more := await _soon(response)):
                    content += more
        except (aiohttp.ClientError, OSError) as error:
            if told is None or not content:
                raise _in_our_words(error) from None
        return Reply(*told, content)

    async def close(self) -> None:
        """Let go of every connection."""
        for session in (self._reads, self._writes):
            if session is not None:
                await session.close()
        self._reads = self._writes = None

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


def _in_our_words(error: Exception) -> Lost | NeverLeft:
    """Return our word for a failure below us; `TimeoutError` is an `OSError`."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return NeverLeft(f"no connection ({type(error).__name__})")
    if isinstance(error, TimeoutError):
        return TimedOut("no answer in time")
    return Lost(f"the connection broke ({type(error).__name__})")


async def _bounded(response: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > most_bytes:
            response.close()
            raise TooLarge(f"its answer is longer than {most_bytes} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


async def _soon(response: aiohttp.ClientResponse) -> bytes:
    """Return what a stream says next, or nothing when it ends or falls silent."""
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await response.content.readany()
    except TimeoutError:
        return b""


async def _single_use(body: bytes) -> AsyncIterator[bytes]:
    yield body
