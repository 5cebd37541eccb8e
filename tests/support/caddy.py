"""A real Caddy with the shipped configuration, on ports of a test's own."""

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from tests.support import ports

SHIPPED = Path(__file__).parents[2] / "deploy" / "caddy" / "gpubid.json"
installed = pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed (make nightly)")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running Caddy: the ports of its frontend and of its own API."""

    port: int
    api_port: int

    @property
    def url(self) -> str:
        """The address of its frontend."""
        return f"http://127.0.0.1:{self.port}"


@contextlib.asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Proxy]:
    """Run Caddy while the block runs."""
    proxy = Proxy(ports.free(), ports.free())
    settings = SHIPPED.read_text()
    assert "127.0.0.1:8080" in settings
    file = folder / "caddy.json"
    api = {"admin": {"listen": f"127.0.0.1:{proxy.api_port}"}}
    file.write_text(json.dumps(json.loads(settings.replace("127.0.0.1:8080", f"127.0.0.1:{proxy.port}")) | api))
    folders = {"XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    command = "caddy", "run", "--config", str(file)
    quiet = asyncio.subprocess.DEVNULL
    program = await asyncio.create_subprocess_exec(*command, env=os.environ | folders, stdout=quiet, stderr=quiet)
    try:
        await _answers(proxy, program)
        yield proxy
    finally:
        program.kill()
        await program.wait()


async def _answers(proxy: Proxy, program: asyncio.subprocess.Process) -> None:
    async with aiohttp.ClientSession() as client:
        for _ in range(1000):
            assert program.returncode is None, "caddy ended at once"
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with client.get(f"http://127.0.0.1:{proxy.api_port}/config/"):
                    return
            await asyncio.sleep(0.01)
    raise AssertionError("caddy does not answer")
