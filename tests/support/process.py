"""The program as a separate process, started on the ledger of a rehearsed world and killed at a given step."""

import asyncio
import dataclasses
import json
import os
import signal
from pathlib import Path

from agent.act import crashpoint
from tests.support import launch
from tests.support.world import Rehearsed

ROOT = Path(__file__).parents[2]
MOST_CYCLES = 400


async def die(world: Rehearsed, place: str, *, ids: str = "child") -> None:
    """Run the program as a separate process on the world's ledger until it is killed at `place`."""
    assert await start(world, place=place, ids=ids) == -signal.SIGKILL, f"it never came to {place}: {world.told()}"


async def start(world: Rehearsed, *, place: str = "", ids: str = "child", cycles: int = MOST_CYCLES) -> int:
    """Run the program as a separate process. Return its exit code."""
    assert not world.is_open
    told = {
        "ledger": str(world.config.ledger),
        "server": dataclasses.astuple(world.config.ledger_server)[:2] if world.config.ledger_server else None,
        "slots": world.scene.workloads[0].slots,
        "image_gb": world.scene.workloads[0].image_gb,
        "ssh_keys": world.scene.workloads[0].ssh_keys,
        "vast_url": world.simulator.vast_url,
        "control_url": world.simulator.control_url,
        "now": world.clock.time(),
        "cycles": cycles,
        "ids": f"{ids}/{place}",
    }
    process = await launch.start(
        "tests.crash.daemon",
        json.dumps(told),
        folder=ROOT,
        environment=os.environ | {crashpoint.VARIABLE: place},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=None,
    )
    return await process.wait()
