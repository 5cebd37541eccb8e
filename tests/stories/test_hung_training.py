"""Training that hangs under a guard that beats on: it moves, and goes on from its last checkpoint on another host.

Nothing is played: the daemon, the guard, the work and the store of the bucket are programs over TCP, on one clock.
"""

import asyncio
import contextlib
import dataclasses
import json
import shlex
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.simulator.processes.container_process import Start
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.world import World
from tests.support import guarded_fleet, programs, s3_server, trainer
from tests.support.container_scene import REAL
from tests.support.guarded_fleet import GuardedFleet, OwnRoots
from tests.support.market import START
from tests.support.programs import LIVE, until
from tests.support.steered import Simulator
from tests.support.stormy_work import DISK, FOLDER

SPEED = 30.0
HANGS_AT = 150
PAUSE_SECONDS = 0.1
"""Of our time: a step is three seconds of the market's, and it hangs after seven and a half minutes."""
GUARD = """\
kind = "batch"
command = {command}
stalled_after = "6m"
stalled_then = ["warn", "move", "hold"]
env = {{ HANGS_AT = "{hangs_at}" }}
[workloads.train.guard]
paths = ["{folder}"]
complete = "state.json"
bucket = "s3://runs/train"
endpoint = "{endpoint}"
credential = "train_bucket"
"""


class OwnDisks(OwnRoots):
    """Containers whose disk is at the configured place."""

    def start(self, process: Any, start: Start, **more: Any) -> None:
        def own(text: str) -> str:
            return text.replace(DISK, str(process.place))

        env = {name: own(text) for name, text in start.env.items()}
        super().start(process, Start([own(word) for word in start.command], own(start.script), env), **more)


@dataclasses.dataclass(frozen=True)
class Stage(GuardedFleet):
    """The market with its instances, the bucket, and the box of the daemon."""

    environment: dict[str, str]

    async def beats(self) -> list[dict[str, Any]]:
        """Return the last beat of each lease."""
        names = [name for name in await asyncio.to_thread(self.server.names) if "/beat-" in name]
        return [json.loads(await asyncio.to_thread(self.server.get, name)) for name in sorted(names)]

    async def hung(self) -> dict[str, Any]:
        """Return the beat of the lease whose work hangs, empty before it does."""
        return next((beat for beat in await self.beats() if beat.get("progress") == HANGS_AT), {})

    async def goes_on(self) -> bool:
        """Return whether the work of another lease has passed the step at which it hung."""
        return any((beat.get("progress") or 0) > HANGS_AT for beat in await self.beats())

    def told(self, kind: str) -> list[str]:
        rows = self.rows("SELECT kind, reason FROM events ORDER BY event_id")
        return [reason for found, reason in rows if found == kind]


@contextlib.asynccontextmanager
async def stage(place: Path) -> AsyncIterator[Stage]:
    clock = ScaledClock(START, SPEED)
    registry = OwnDisks(clock, speed=SPEED, folder=place / "disks", isolates=True, most_running=4)
    world = World(REAL, seed=7, start=START, hosts=60)
    environment = {**guarded_fleet.environment(place, clock, SPEED), "STORY_TIMERS": "real"}
    with s3_server.served() as server:
        async with Simulator(world, clock, seed=7, processes=registry) as simulator:
            command = json.dumps(shlex.join(trainer.command(FOLDER, pause_seconds=PAUSE_SECONDS)))
            guard = GUARD.format(command=command, hangs_at=HANGS_AT, folder=FOLDER, endpoint=server.url)
            live = LIVE.replace('at = "remote"', 'at = "remote", interval = "2m"')
            (place / "agent.toml").write_text(live.format(url=simulator.vast_url) + guard)
            yield Stage(place, simulator, server, environment)


@pytest.mark.nightly
@pytest.mark.long(150)
async def test_training_that_hangs_while_its_guard_beats_moves_and_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    async with stage(tmp_path) as it, programs.daemon(it.place, **it.environment):
        hung = await until(it.hung, "work that hangs")
        first = it.rows("SELECT lease_id, host_id FROM leases")
        await until(lambda: it.told("lease.stalled"), "the warning")
        later = await it.hung()
        assert later["sequence"] > hung["sequence"], "its guard beats on"
        assert later["phase"] == "running"
        await until(it.goes_on, "work beyond the step at which it hung")
        stalled = it.told("lease.stalled")
        assert [text.rpartition("; ")[2] for text in stalled] == [
            "only a warning is given, and after another 6 min of this another host is tried",
            "another host is tried",
        ]
        await until(lambda: it.rows("SELECT 1 FROM leases WHERE ended_at IS NOT NULL"), "the end of the first lease")
        ((_, host),) = it.rows("SELECT lease_id, host_id FROM leases WHERE ended_at IS NULL")
        assert host != first[0][1]
        assert it.rents() == 2
        assert it.told("workload.held") == []
        begun = max(beat["progress"] or 0 for beat in await it.beats())
        assert begun > HANGS_AT
