"""What the shipped HAProxy configuration sends again when a server hangs up: what only reads, and nothing else."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from agent.front import haproxy_socket
from tests.support import haproxy

pytestmark = haproxy.installed


@contextlib.asynccontextmanager
async def hanging_up(seen: list[str]) -> AsyncIterator[int]:
    """Run a server that reads a request, notes its method and hangs up, as one whose host is outbid does."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            seen.append(head.split(b" ", 1)[0].decode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("method", "is_repeated"),
    [("GET", True), ("HEAD", True), ("POST", False), ("PUT", False), ("PATCH", False), ("DELETE", False)],
)
async def test_only_what_reads_is_sent_again(method: str, is_repeated: bool, tmp_path: Path) -> None:
    """A PATCH that a lost lease had worked on was worked on again elsewhere."""
    seen: list[str] = []
    async with haproxy.running(tmp_path, places=2) as proxy, hanging_up(seen) as one, hanging_up(seen) as two:
        for number, port in enumerate((one, two), start=1):
            server = f"{haproxy.BACKEND}/gpu{number}"
            await haproxy_socket.ask(
                proxy.socket, f"set server {server} addr 127.0.0.1 port {port}; enable server {server}"
            )
        async with aiohttp.ClientSession() as client:
            with contextlib.suppress(aiohttp.ClientError):
                async with client.request(method, proxy.url) as answer:
                    assert answer.status >= 500
    assert set(seen) == {method}
    assert (len(seen) > 1) is is_repeated
