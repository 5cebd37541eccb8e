"""What the daemon serves on this machine: /metrics for Prometheus, /healthz and /readyz for whoever watches, the page.

By default it is bound to the loopback address: figures of spend are nobody else's business.
"""

from collections.abc import Iterable

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler

from agent.telemetry.health import Health

MOST_BODY = 16 * 1024
"""Bytes of a posted form: a verb, a target and a proof."""


class ListenError(Exception):
    """The address cannot be served; the text says what to change."""

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
    ) -> None:
        """Serve on `host` and `port`; port 0 takes any free one. `routes` are the page's."""
        self._host = host
        self._port = port
        self._health = health
        app = web.Application(middlewares=[_uncached], client_max_size=MOST_BODY)
        app.router.add_routes(routes)
        app.router.add_get("/metrics", make_aiohttp_handler(registry))
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._ready)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handle_signals=False)

    async def start(self) -> tuple[str, int]:
        """Listen, and return the address and port that are served.

        Raises:
            ListenError: another program has the port, or the address is not of this machine.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            sentence = f"cannot listen on {self._host}:{self._port} ({error.strerror}); change listen in [web]"
            raise ListenError(sentence) from None
        host, port = self._runner.addresses[0][:2]
        return str(host), int(port)

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _alive(self, _request: web.Request) -> web.Response:
        return _verdict(is_good=self._health.is_alive, late=[str(late) for late in self._health.late()])

    async def _ready(self, _request: web.Request) -> web.Response:
        return _verdict(is_good=self._health.is_ready, late=[str(late) for late in self._health.late()])


def _verdict(*, is_good: bool, late: list[str]) -> web.Response:
    return web.json_response({"ok": is_good, "late": late}, status=200 if is_good else 503)


@web.middleware
async def _uncached(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    response.headers["Cache-Control"] = "no-store"
    return response
