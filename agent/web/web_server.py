"""The daemon's web server: /metrics for Prometheus, /healthz and /readyz for health checks, the page.

By default it is bound to the loopback address, because figures of spend are private. A webhook proves itself by its
signature; every other route answers only requests that use one of our names (agent/web/request_checks/middlewares.py).
"""

import asyncio
import errno
import socket
from collections.abc import Collection, Iterable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from agent.telemetry.health import Health
from agent.web import webhook_deliveries
from agent.web.request_checks import middlewares
from agent.web.request_checks.refusal_log import Refusals

MOST_BODY = 64 * 1024
"""The most bytes of a posted form: a verb, a target and a proof."""
MOST_CONNECTIONS = 64
"""The most connections at a time. Idle clients must not use up the file descriptors that calls to markets need."""


class ListenError(Exception):
    """The address cannot be served. The text says what to change."""

    code = "cannot_listen"


class Server:
    """Serves a registry and a health over HTTP, from `start` to `close`."""

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        health: Health,
        routes: Iterable[web.AbstractRouteDef] = (),
        *,
        names: Collection[str] = (),
        refusals: Refusals | None = None,
    ) -> None:
        """Serve on `host` and `port`. Port 0 takes any free one. Requests may use addresses and `names`."""
        self._host = host
        self._port = port
        self._health = health
        refusals = refusals or Refusals(lambda: asyncio.get_running_loop().time())
        signed = {webhook_deliveries.path(record) for record, _ in webhook_deliveries.senders()}
        checks = [middlewares.answering(refusals), middlewares.checking(names, refusals, signed)]
        app = web.Application(middlewares=checks, client_max_size=MOST_BODY)
        app.router.add_routes(routes)
        app.router.add_get("/metrics", middlewares.Turn().taken(make_aiohttp_handler(registry)))
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._ready)
        self._runner = web.AppRunner(app, **middlewares.bounds(refusals))
        self._listener: asyncio.Server | None = None

    async def start(self) -> tuple[str, int]:
        """Listen, and return the address and port.

        Raises:
            ListenError: another program has the port, or the address is not of this machine.
        """
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        try:
            self._listener = await loop.create_server(self._let_in, self._host, self._port)
        except OSError as error:
            await self._runner.cleanup()
            raise ListenError(_refusal(f"{self._host}:{self._port}", error)) from None
        host, port = self._listener.sockets[0].getsockname()[:2]
        return str(host), int(port)

    async def close(self) -> None:
        """Stop listening."""
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _let_in(self) -> asyncio.Protocol:
        """Return the handler of a new connection. If there are too many, close the oldest."""
        inside = self._runner.server
        if inside is None:
            raise ListenError("closed")
        for oldest in inside.connections[: 1 - MOST_CONNECTIONS]:
            if oldest.transport is not None:
                oldest.transport.abort()
        return inside()

    async def _alive(self, _request: web.Request) -> web.Response:
        return self._verdict(is_good=self._health.is_alive)

    async def _ready(self, _request: web.Request) -> web.Response:
        return self._verdict(is_good=self._health.is_ready)

    def _verdict(self, *, is_good: bool) -> web.Response:
        role = {"role": self._health.role} if self._health.role else {}
        late = [*map(str, self._health.late()), *self._health.troubled()]
        return web.json_response({"ok": is_good, "late": late, **role}, status=200 if is_good else 503)


def refuse_unserved(host: str, port: int) -> None:
    """Refuse an address that could not be served now.

    Raises:
        ListenError: as `Server.start`.
    """
    try:
        for family, kind, number, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, number) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(place)
                probe.listen(1)
    except OSError as error:
        raise ListenError(_refusal(f"{host}:{port}", error)) from None


def _refusal(address: str, error: OSError) -> str:
    """Return why an address cannot be served, and what to do."""
    if error.errno == errno.EADDRINUSE:
        why = "another program has it, perhaps a second daemon with this file"
        return f"cannot listen on {address} ({why}): end that program, or change listen in [web]"
    return f"cannot listen on {address} ({error.strerror}); change listen in [web]"
