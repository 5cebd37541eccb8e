"""Checks before every route of HTTP server and socket: bounds of a connection, known names, no traceback outside.

1. A request that cannot be understood gets 4xx. A defect of ours gets 500. A ledger that cannot be read gets 503.
2. All of these are logged at a bounded rate: an unauthenticated sender neither fills the disk nor slows the cycle.
"""

import asyncio
import logging
from collections.abc import Collection
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from agent.ledger.ledger_errors import LedgerError
from agent.web.request_checks.known_names import is_addressed_to_us, is_from_elsewhere
from agent.web.request_checks.refusal_log import Refusals

MOST_HEADERS = 40
MOST_HEADER_BYTES = 8 * 1024
IDLE_SECONDS = 75.0
LINGER_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 0.1
ELSEWHERE = "Use the IP address, localhost, or a host name listed as `names` in [web].\n"
FOREIGN = "This form is not from a page of this daemon: open the daemon's page, and give the order there.\n"


def bounds(refusals: Refusals) -> dict[str, Any]:
    """Return the settings of an aiohttp runner: the bounds of one connection, and a log for bad requests."""
    return {
        "access_log": None,
        "auto_decompress": False,
        "handle_signals": False,
        "keepalive_timeout": IDLE_SECONDS,
        "lingering_time": LINGER_SECONDS,
        "logger": _Complaints(refusals),
        "max_field_size": MOST_HEADER_BYTES,
        "max_headers": MOST_HEADERS,
        "max_line_size": MOST_HEADER_BYTES,
        "shutdown_timeout": 1.0,
    }


def answering(refusals: Refusals) -> Middleware:
    """Return the outermost middleware: no answer is cached, and the answer to a defect has no traceback."""

    @web.middleware
    async def answered(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Return an answer, even if the route fails."""
        try:
            answer = await handler(request)
        except web.HTTPException as refusal:
            answer = refusal
        except LedgerError as error:
            refusals.failed(error)
            answer = web.json_response({"error": error.code.value, "sentence": error.sentence}, status=503)
        except Exception as error:  # noqa: BLE001 - a defect of one route ends with its answer
            refusals.failed(error)
            answer = web.json_response({"error": "bug", "sentence": "a defect of gpubid: see its log"}, status=500)
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["Server"] = "gpubid"
        answer.headers["X-Content-Type-Options"] = "nosniff"
        if isinstance(answer, web.HTTPException):
            raise answer
        return answer

    return answered


def checking(names: Collection[str], refusals: Refusals, exempt: Collection[str]) -> Middleware:
    """Return the middleware that refuses foreign names and forms of other sites, on every path but `exempt`."""
    own = frozenset(name.lower().rstrip(".") for name in names)

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in exempt:
            return await handler(request)
        if not is_addressed_to_us(request, own):
            refusals.refused("foreign_name", request.remote, request.host)
            return web.Response(text=ELSEWHERE, status=421)
        if is_from_elsewhere(request, own):
            refusals.refused("foreign_page", request.remote, request.headers.get("Origin", ""))
            return web.Response(text=FOREIGN, status=403)
        return await handler(request)

    return checked


class Turn:
    """Lets one request at a time through, with an equally long pause after each, so that cycles have half the loop.

    It is only for handlers that read no body: a slow sender would keep the others waiting.
    """

    def __init__(self) -> None:
        """Begin without waiting requests."""
        self._lock = asyncio.Lock()

    def taken(self, handler: Handler) -> Handler:
        """Return a handler that waits for its turn."""

        async def answered(request: web.Request) -> web.StreamResponse:
            await self._lock.acquire()
            loop = asyncio.get_running_loop()
            began = loop.time()
            try:
                return await handler(request)
            finally:
                loop.call_later(min(loop.time() - began, LONGEST_PAUSE_SECONDS), self._lock.release)

        return answered


class _Complaints(logging.Logger):
    """Receives aiohttp's log of a connection: aiohttp logs a traceback for each request that it cannot parse."""

    def __init__(self, refusals: Refusals) -> None:
        super().__init__("gpubid.http", logging.WARNING)
        self._refusals = refusals

    def handle(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        client = str(record.args[0]) if isinstance(record.args, tuple) and record.args else None
        if error is None or isinstance(error, HttpProcessingError):
            self._refusals.refused("no_request", client, f"{type(error).__name__} {error}")
        else:
            self._refusals.failed(error)
