"""A page to test: a rehearsed world with its pages served over real HTTP."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from agent.config.settings import Listen
from agent.telemetry import metric_families
from agent.telemetry.health import Health
from agent.web import operator_socket
from agent.web.feed import feed_routes
from agent.web.feed.live_feed import LiveFeed
from agent.web.site import site
from tests.support.world import POLL, Rehearsed, rehearsed

TOKEN = "a token of the test"
SECRET = "a secret of the test"


@dataclass(frozen=True, slots=True)
class Served:
    """A world, the address of its page, and a client that keeps cookies."""

    world: Rehearsed
    url: str
    socket: Path
    client: aiohttp.ClientSession
    feed: LiveFeed

    @property
    def place(self) -> tuple[str, int]:
        """Where the page is served."""
        host, port = self.url.removeprefix("http://").split(":")
        return host, int(port)

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.client.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, **form: str) -> tuple[int, str]:
        async with self.client.post(self.url + path, data=form) as answer:
            return answer.status, await answer.text()


@contextlib.asynccontextmanager
async def served(
    directory: Path,
    token: str | None = TOKEN,
    *,
    listen: str = "127.0.0.1",
    names: tuple[str, ...] = (),
    running: int | None = None,
    **changes: Any,
) -> AsyncIterator[Served]:
    """Serve the page of a world in which every slot, or so many, run, and its operators' socket."""
    async with (
        rehearsed(directory, **{"poll": POLL, **changes}) as world,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
    ):
        await world.until_running(slots=running)
        world.app.config = dataclasses.replace(world.app.config, listen=Listen(listen, 0, names=names))
        feed = LiveFeed(world.app)
        server = site(
            world.app,
            metric_families.registry(),
            Health(world.clock.monotonic),
            lambda: None,
            token=(lambda: token) if token is not None else None,
            webhook_secret=lambda: SECRET,
            feed=feed,
        )
        place = operator_socket.path_of(world.app.ledger.path)
        socket = operator_socket.OperatorSocket(place, world.app, lambda: None, routes=feed_routes.routes(feed))
        host, port = await server.start()
        await socket.start()
        try:
            yield Served(world, f"http://{host}:{port}", place, client, feed)
        finally:
            await socket.close()
            await server.close()
