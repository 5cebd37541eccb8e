"""A web server of an operator, which receives messages."""

import asyncio
import json

from aiohttp import web


class Receiver:
    """A web server of the operator's own: keeps every request, and gives the set answer."""

    def __init__(self) -> None:
        self.status = 204
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = ""
        made = web.Application()
        made.router.add_post("/{tail:.*}", self._take)
        self._runner = web.AppRunner(made)

    async def _take(self, request: web.Request) -> web.Response:
        self.got.append((dict(request.headers), await request.read()))
        await self.may_answer.wait()
        return web.Response(status=self.status)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/hook"

    async def close(self) -> None:
        await self._runner.cleanup()

    @property
    def titles(self) -> list[str]:
        return [json.loads(body)["title"] for _, body in self.got]
