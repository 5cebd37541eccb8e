"""A page that answers how many tasks wait in a queue."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web


@dataclass(slots=True)
class QueuePage:
    """The page, and what it answers from now on."""

    url: str = ""
    tasks: str = "0"
    status: int = 200


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[QueuePage]:
    """Serve the page while the block runs."""
    page = QueuePage()

    async def answered(_: web.Request) -> web.Response:
        return web.Response(text=page.tasks, status=page.status)

    app = web.Application()
    app.router.add_get("/backlog", answered)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    page.url = f"http://127.0.0.1:{runner.addresses[0][1]}/backlog"
    try:
        yield page
    finally:
        await runner.cleanup()
