"""A real HAProxy with the shipped configuration, on ports and a socket of a test's own."""

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.front import haproxy_socket, haproxy_state
from agent.front.haproxy_state import Server
from tests.support import ports

SHIPPED = Path(__file__).parents[2] / "deploy" / "haproxy" / "gpubid.cfg"
BACKEND = "gpubid_chat"
installed = pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed (make tools)")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running HAProxy."""

    socket: Path
    port: int

    @property
    def url(self) -> str:
        """The address of its frontend."""
        return f"http://127.0.0.1:{self.port}"

    async def servers(self) -> tuple[Server, ...]:
        """Return its servers that are not in maintenance."""
        answer = await haproxy_socket.ask(self.socket, haproxy_state.question(BACKEND))
        return tuple(server for server in haproxy_state.servers(answer, BACKEND) if not server.is_off)


@contextlib.asynccontextmanager
async def running(folder: Path, *, places: int = 16) -> AsyncIterator[Proxy]:
    """Run HAProxy while the block runs, with so many places for servers."""
    proxy = Proxy(folder / "admin.sock", ports.free())
    settings = SHIPPED.read_text()
    for shipped, ours in (
        ("/run/haproxy/admin.sock mode 660", f"{proxy.socket} mode 600"),
        ("127.0.0.1:8080", f"127.0.0.1:{proxy.port}"),
        ("gpu 1-16", f"gpu 1-{places}"),
    ):
        assert shipped in settings
        settings = settings.replace(shipped, ours)
    file = folder / "haproxy.cfg"
    file.write_text(settings)
    program = await asyncio.create_subprocess_exec("haproxy", "-db", "-f", str(file))
    try:
        for _ in range(1000):
            if proxy.socket.exists() or program.returncode is not None:
                break
            await asyncio.sleep(0.01)
        assert program.returncode is None, "haproxy ended at once"
        yield proxy
    finally:
        program.kill()
        await program.wait()
