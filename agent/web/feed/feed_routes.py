"""The routes of the feed, read only and the same over HTTP and over the operators' socket."""

import asyncio
import contextlib

import msgspec
from aiohttp import hdrs, web

from agent.ledger.ledger_errors import LedgerError
from agent.web.feed import openapi
from agent.web.feed.live_feed import LiveFeed, Message
from agent.web.request_checks import middlewares

PATIENCE_SECONDS = 30.0
"""How long a client may take to read a message before its stream is ended."""
RETRY_MILLISECONDS = 3_000
HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def routes(feed: LiveFeed) -> list[web.RouteDef]:
    """Return the routes of `feed`."""

    async def fleet(_: web.Request) -> web.Response:
        return web.Response(body=(await feed.newest()).body, content_type="application/json")

    async def described(_: web.Request) -> web.Response:
        return web.Response(body=msgspec.json.encode(openapi.document()), content_type="application/json")

    async def events(request: web.Request) -> web.StreamResponse:
        # A ledger that cannot be read is an error before the stream begins. Later, it ends the stream.
        await feed.newest()
        answer = web.StreamResponse(headers=HEADERS)
        await answer.prepare(request)
        if request.method == hdrs.METH_HEAD:
            return answer
        with contextlib.suppress(ConnectionError, TimeoutError, LedgerError):
            await _push(feed, request, answer)
        return answer

    turn = middlewares.Turn()
    return [
        web.get(openapi.FLEET_PATH, turn.taken(fleet)),
        web.get(openapi.EVENTS_PATH, events),
        web.get(openapi.DOCUMENT_PATH, turn.taken(described)),
    ]


async def _push(feed: LiveFeed, request: web.Request, answer: web.StreamResponse) -> None:
    await answer.write(f"retry: {RETRY_MILLISECONDS}\n\n".encode())
    async with contextlib.aclosing(feed.messages()) as messages:
        async for message in messages:
            if _is_gone(request):
                return
            if message is not None:
                await _write(request, answer, message)


async def _write(request: web.Request, answer: web.StreamResponse, message: Message) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await answer.write(_written(message))
    except TimeoutError:
        # A normal close would also wait for the client, with all unsent data in memory.
        if request.transport is not None:
            request.transport.abort()
        raise


def _written(message: Message) -> bytes:
    return b"event: " + message.event.encode() + b"\ndata: " + message.body + b"\n\n"


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
