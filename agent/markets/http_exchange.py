"""One HTTP exchange: a request as a value goes out, status, headers and body come back.

Invariants:
1. A write leaves at most once. Its body can be read a single time, so nothing below us can send it again. It travels on
   a fresh connection, because a kept-alive socket may be closing. Redirects are not followed.
2. A failure says whether the request may have left: `NeverLeft` proves that it did not.
"""

import asyncio
import errno
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
import yarl

from agent import __version__
from agent.markets import outer_address, send_permit

SILENCE_SECONDS = 1.5
"""Silence after which a stream counts as complete."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is ready to leave; a repr shows neither its headers, which contain the key, nor its body."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    is_write: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as received."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def is_ok(self) -> bool:
        """Whether the status is 2xx; the body may still be a refusal."""
        return 200 <= self.status < 300  # noqa: PLR2004

    @property
    def looks_like_json(self) -> bool:
        """Whether the body begins as a JSON object or list."""
        return self.body.lstrip()[:1] in {b"{", b"["}

    @property
    def looks_like_page(self) -> bool:
        """Whether the body begins as HTML, which a proxy on the way may have written."""
        return self.body.lstrip()[:1] == b"<"


class Lost(Exception):
    """No usable answer; the text gives the reason without any secret."""


class TimedOut(Lost):
    """No answer came in time."""


class TooLarge(Lost):
    """The answer was longer than the bound."""


class NeverLeft(Exception):
    """There was no connection."""


class Exchange(Protocol):
    """Carries requests to a market: a network, or a simulated market in the same process."""

    async def send(self, request: Request, most_bytes: int) -> Reply:
        """Send a request once and return the whole answer.

        Raises: Lost, TimedOut, TooLarge, NeverLeft.
        """
        ...

    async def first(self, request: Request, most_bytes: int) -> Reply:
        """Return the first bytes of an answer; a longer answer is cut.

        Raises: Lost, TimedOut, NeverLeft.
        """
        ...

    async def tail(self, request: Request, most_bytes: int) -> Reply:
        """Return the present content of an endless stream: stop when it is silent or too long.

        Raises: Lost, TimedOut, NeverLeft: nothing came.
        """
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class HttpExchange:
    """The network, by aiohttp."""

    def __init__(self, deadline: float, market_url: str = "") -> None:
        """Wait for an answer at most `deadline` seconds of wall time; `market_url` is where the market is asked."""
        self._deadline = deadline
        self._market_url = market_url
        self._files: aiohttp.ClientSession | None = None
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
        """Return the first bytes of an answer; a longer answer is cut."""
        content = b""
        try:
            async with self._session_for_files().get(request.url, allow_redirects=False) as response:
                while len(content) < most_bytes and (more := await response.content.read(most_bytes - len(content))):
                    content += more
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _in_our_words(error) from None
        return Reply(response.status, response.headers, content)

    async def tail(self, request: Request, most_bytes: int) -> Reply:
        """Return the present content of an endless stream: stop when it is silent or too long."""
        content, head = b"", None
        url = yarl.URL(request.url, encoded=True)
        try:
            async with self._session_for_reads().get(url, headers=request.headers, allow_redirects=False) as response:
                head = response.status, response.headers
                while len(content) < most_bytes and (more := await _soon(response)):
                    content += more
        except (aiohttp.ClientError, OSError) as error:
            if head is None or not content:
                raise _in_our_words(error) from None
        return Reply(*head, content)

    async def close(self) -> None:
        """Close every connection."""
        for session in (self._reads, self._writes, self._files):
            if session is not None:
                await session.close()
        self._reads = self._writes = self._files = None

    def _session_for_files(self) -> aiohttp.ClientSession:
        if self._files is None:
            resolver = outer_address.OuterResolver(self._market_url)
            self._files = self._session(aiohttp.TCPConnector(limit=8, resolver=resolver, use_dns_cache=False))
        return self._files

    def _session_for_reads(self) -> aiohttp.ClientSession:
        if self._reads is None:
            self._reads = self._session(aiohttp.TCPConnector(limit=8, keepalive_timeout=20))
        return self._reads

    def _session_for_writes(self) -> aiohttp.ClientSession:
        if self._writes is None:
            asking = aiohttp.TraceConfig()
            asking.on_connection_create_end.append(_ask_again)
            self._writes = self._session(aiohttp.TCPConnector(limit=8, force_close=True), asking)
        return self._writes

    def _session(self, connector: aiohttp.TCPConnector, *traces: aiohttp.TraceConfig) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector,
            trace_configs=list(traces),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._deadline),
            headers={"User-Agent": f"gpubid/{__version__}", "Accept": "application/json"},
            read_bufsize=2**18,
        )


async def _ask_again(*_: object) -> None:
    """Ask once more whether a write may leave, now that it has its connection: that may have taken seconds."""
    send_permit.check()


def _in_our_words(error: Exception) -> Lost | NeverLeft:
    """Return our error for a failure of the library; `TimeoutError` is an `OSError`."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return NeverLeft(f"no connection{_why(error)}")
    if isinstance(error, TimeoutError):
        return TimedOut("no answer in time")
    return Lost(f"the connection broke ({type(error).__name__})")


def _why(error: aiohttp.ClientConnectorError) -> str:
    """Return why there is no connection. The library's own text may contain an address with a secret."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        is_inner = isinstance(error.os_error, outer_address.InnerAddressError)
        return ", its name is not of the public internet" if is_inner else ", its name is not found"
    if error.errno == errno.ECONNREFUSED:
        return ", nobody listens there"
    return f" ({type(error).__name__})"


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
    """Return the next part of a stream, or nothing when it ends or is silent."""
    try:
        async with asyncio.timeout(SILENCE_SECONDS):
            return await response.content.readany()
    except TimeoutError:
        return b""


async def _single_use(body: bytes) -> AsyncIterator[bytes]:
    yield body
