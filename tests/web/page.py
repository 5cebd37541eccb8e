"""A page to test: a rehearsed world with its pages served over real HTTP."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from agent.telemetry import families
from agent.telemetry.health import Health
from agent.web.pages import Pages
from agent.web.server import Server
from agent.web.visitors import Visitors
from tests.support.world import Rehearsed, rehearsed

TOKEN = "a token of the test"


@dataclass(frozen=True, slots=True)
class Served:
    """A world, the address of its page, and a client that keeps cookies."""

    world: Rehearsed
    url: str
    client: aiohttp.ClientSession

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.client.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.text()

    async def post(self, path: str, **form: str) -> tuple[int, str]:
        async with self.client.post(self.url + path, data=form) as answer:
            return answer.status, await answer.text()


@contextlib.asynccontextmanager
async def served(directory: Path, token: str | None = TOKEN, **changes: Any) -> AsyncIterator[Served]:
    """Serve the page of a world in which one lease runs."""
    async with (
        rehearsed(directory, **changes) as world,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client,
    ):
        await world.until_running()
        visitors = Visitors((lambda: token) if token is not None else None, world.clock.monotonic)
        pages = Pages(world.app, visitors, lambda: None)
        server = Server("127.0.0.1", 0, families.registry(), Health(world.clock.monotonic), pages.routes())
        host, port = await server.start()
        try:
            yield Served(world, f"http://{host}:{port}", client)
        finally:
            await server.close()
