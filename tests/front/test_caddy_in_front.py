"""A real Caddy in front of a simulated service: the handbook's command gives it the list of live leases."""

import asyncio
import re
import shlex
from pathlib import Path

import pytest

from agent.config.front_settings import Format, Front
from agent.domain.work.decision import Release
from tests.front.test_haproxy_in_front import ENDED, cycle, serving, status_of, until
from tests.support import caddy
from tests.support.world import rehearsed

pytestmark = [caddy.installed, pytest.mark.nightly]

PAGE = Path(__file__).parents[2] / "deploy" / "handbook" / "pages" / "serving.md"
LIST = "/var/lib/gpubid/chat.json"


def command(proxy: caddy.Proxy, file: Path) -> list[str]:
    """Return the page's command for a proxy and a list of the test's own."""
    (found,) = re.findall(r"^curl .*?(?<!\\)$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert LIST in found
    assert "localhost:2019" in found
    ours = found.replace(LIST, str(file)).replace("localhost:2019", f"127.0.0.1:{proxy.api_port}")
    return shlex.split(ours.replace("\\\n", " "))


async def take(proxy: caddy.Proxy, file: Path) -> None:
    program = await asyncio.create_subprocess_exec(*command(proxy, file))
    assert await program.wait() == 0


async def test_the_command_gives_caddy_the_live_leases(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    front = Front("chat", "train", 8000, file=file, format=Format.CADDY)
    async with (
        caddy.running(tmp_path) as proxy,
        rehearsed(tmp_path, workloads=(serving(),), fronts=(front,)) as world,
    ):
        await until(world, lambda: any(lease.ready_since for lease in world.leases()))
        await take(proxy, file)
        assert await status_of(proxy.url) == 200
        await world.app.order([Release(world.lease(), ENDED)], "me")
        await cycle(world)
        await take(proxy, file)
        assert await status_of(proxy.url) == 503
