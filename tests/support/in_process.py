"""Requests without a socket: an adapter and a simulated market in one process.

This module treats answers as a connection would: a dropped or half answer is lost, and too long an answer is refused.
"""

import functools
import urllib.parse
from collections.abc import Awaitable, Callable

from multidict import CIMultiDict, MultiDict

from agent.markets.http_exchange import Lost, Reply, Request, TooLarge
from agent.simulator.http_wire import Answer, Asked, Cut

Answering = Callable[[Asked], Awaitable[Answer]]
"""The market's side: `VastApi.answer` or `RunpodApi.answer`."""


class InProcess:
    """Carries requests to one simulated market."""

    def __init__(self, answer: Answering) -> None:
        """Hand every request to `answer`."""
        self._answer = answer

    async def send(self, request: Request, most_bytes: int) -> Reply:
        """Send a request once and return the whole answer."""
        answer = await self._asked(request)
        if answer.cut is Cut.HALF:
            raise Lost("the connection broke (half an answer)")
        if len(answer.body) > most_bytes:
            raise TooLarge(f"its answer is longer than {most_bytes} bytes")
        return _reply(answer, answer.body)

    async def first(self, request: Request, most_bytes: int) -> Reply:
        """Return the first bytes of an answer, and cut off the others."""
        return await self.tail(request, most_bytes)

    async def tail(self, request: Request, most_bytes: int) -> Reply:
        """Return the present content of a stream."""
        answer = await self._asked(request)
        body = answer.body[: len(answer.body) // 2] if answer.cut is Cut.HALF else answer.body
        return _reply(answer, body[:most_bytes])

    async def close(self) -> None:
        """Do nothing: there is no connection to close."""

    async def _asked(self, request: Request) -> Answer:
        answer = await self._answer(_asked(request))
        if answer.more is not None:
            await answer.more.aclose()
        if answer.cut is Cut.NOTHING:
            raise Lost("the connection broke (dropped)")
        return answer


def _asked(request: Request) -> Asked:
    path, pairs, base = _parts(request.url)
    headers = CIMultiDict(request.headers)
    return Asked(request.method, path, MultiDict(pairs), headers, request.body or b"", "127.0.0.1", base)


@functools.lru_cache(4096)
def _parts(url: str) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """Return path, query and base of an address; a market is asked for the same ones in every pass."""
    parts = urllib.parse.urlsplit(url)
    pairs = urllib.parse.parse_qsl(parts.query, keep_blank_values=True) if parts.query else ()
    return urllib.parse.unquote(parts.path), tuple(pairs), f"{parts.scheme}://{parts.netloc}"


def _reply(answer: Answer, body: bytes) -> Reply:
    return Reply(answer.status, CIMultiDict(answer.headers), body)
