"""A daemon that dies: the guard of its instance ends that, once and in time, and the daemon that comes back goes on.

Nothing is played: the daemon, the guard, the work and the store of the bucket are programs over TCP, on one clock.
"""

import asyncio
import contextlib
import dataclasses
import json
import re
import shlex
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.world import World
from tests.support import guarded_fleet, programs, s3_server, store_proxy, trainer
from tests.support.container_scene import REAL
from tests.support.guarded_fleet import GuardedFleet, OwnRoots
from tests.support.market import START
from tests.support.programs import LIVE, until
from tests.support.s3_servers import Store
from tests.support.steered import Simulator
from tests.support.store_proxy import StoreProxy

SPEED = 60.0
"""An hour in a minute: each second of an answer is a minute, and a clock that is a minute off stops what pays."""
HOUR = 3_600.0
AWAY = 1_200.0
"""So long the bucket is away, while the daemon is dead."""
SPARE = 180.0
"""Of our three clocks, and of the looks of a guard."""
INSTANCE = re.compile(r"/instances/\d+/$")
GUARD = """\
kind = "batch"
command = {command}
[workloads.train.guard]
paths = [{path}]
complete = "state.json"
deadman = "1h"
bucket = "s3://runs/train"
endpoint = "{endpoint}"
credential = "train_bucket"
"""


@dataclasses.dataclass(frozen=True)
class Stage(GuardedFleet):
    """The market with its instances, the bucket, and the box of the daemon."""

    proxy: StoreProxy
    environment: dict[str, str]

    @contextlib.asynccontextmanager
    async def daemon(self) -> AsyncIterator[programs.Daemon]:
        async with programs.daemon(self.place, **self.environment) as running:
            yield running

    async def passes(self, seconds: float) -> None:
        deadline = self.now() + seconds
        await until(lambda: self.now() >= deadline, f"{seconds} s of the market's clock")

    async def note(self, part: str) -> dict[str, Any]:
        """Return the one note of the run whose name has a part, empty while there is none."""
        names = [name for name in await asyncio.to_thread(self.server.names) if part in name]
        assert len(names) <= 1, names
        return dict(json.loads(await asyncio.to_thread(self.server.get, names[0]))) if names else {}

    async def signed(self) -> int:
        return int((await self.note("/alive.json")).get("written", 0))

    async def is_signed_after(self, written: int) -> bool:
        return await self.signed() > written

    async def progress(self) -> float:
        """Return the step of the work, as its guard reports it; 0 while it does not run."""
        beat = await self.note("/beat-")
        return float(beat.get("progress") or 0.0) if beat.get("phase") == "running" else 0.0

    async def works_after(self, step: float) -> bool:
        return await self.progress() > step

    def stops(self) -> list[tuple[float, int]]:
        """Return the requests to the market to change an instance, each with its time and answer."""
        calls = self.simulator.api.calls
        return [(at, status) for at, method, path, status in calls if method == "PUT" and INSTANCE.search(path)]

    def states(self) -> list[str]:
        return [contract.status for contract in self.simulator.world.contracts.values() if contract.ended is None]


@contextlib.asynccontextmanager
async def stage(place: Path) -> AsyncIterator[Stage]:
    clock = ScaledClock(START, SPEED)
    registry = OwnRoots(clock, speed=SPEED, folder=place / "disks", isolates=True, most_running=4)
    world = World(REAL, seed=7, start=START, hosts=60)
    environment = {**guarded_fleet.environment(place, clock, SPEED), "STORY_TIMERS": "real"}
    with s3_server.served() as server, store_proxy.before(Store("moto", server.url)) as proxy:
        async with Simulator(world, clock, seed=7, processes=registry) as simulator:
            work = place / "work"
            quoted = json.dumps(shlex.join(trainer.command(work, pause_seconds=0.1)))
            guard = GUARD.format(command=quoted, path=json.dumps(str(work)), endpoint=proxy.url)
            (place / "agent.toml").write_text(LIVE.format(url=simulator.vast_url) + guard)
            yield Stage(place, simulator, server, proxy, environment)


async def killed(it: Stage) -> int:
    """Let a daemon live for a while, and kill it; return the number of its last sign of life."""
    async with it.daemon() as daemon:
        await until(lambda: it.states() == ["running"], "an instance that runs")
        await until(lambda: it.works_after(0.0), "work under its guard")
        first = await until(it.signed, "a sign of life")
        # While it lives its signs come, and nothing fires.
        await until(lambda: it.is_signed_after(first), "the next one")
        assert it.stops() == []
        assert await daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    return await it.signed()


async def fired(it: Stage, last: int) -> int:
    """Wait until the switch fires, over a time in which the bucket is away; return the step that was saved before."""
    await it.passes(HOUR / 4)
    it.proxy.fault = lambda _method, _path: 503
    await it.passes(AWAY)
    it.proxy.fault = lambda _method, _path: None
    assert it.stops() == []
    await until(it.stops, "the switch")
    await until(lambda: it.states() == ["stopped"], "a stopped instance")
    ((at, status),) = it.stops()
    assert status == 200
    # The time in which the bucket was away is no silence.
    assert at >= last + HOUR + AWAY - SPARE
    note = await it.note("/deadman-")
    assert (note["written"], note["destroys"], note["silent_seconds"] >= HOUR) == (last, False, True)
    assert note["manifest"]
    await it.passes(HOUR / 6)
    assert it.stops() == [(at, 200)]
    return int(json.loads((it.place / "work" / "state.json").read_text())[1])


@pytest.mark.nightly
@pytest.mark.long(150)
async def test_a_dead_daemons_instance_ends_itself_once_and_in_time_and_goes_on_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as it:
        last = await killed(it)
        saved = await fired(it, last)
        async with it.daemon():
            await until(lambda: it.states() == ["running"], "the same instance, running again")
            await until(lambda: it.is_signed_after(last), "a sign of the daemon that is back")
            await until(lambda: it.works_after(saved), "work that goes on from its last checkpoint")
            ((cause, rule),) = it.rows("SELECT cause, rule FROM events WHERE kind = 'lease.interrupted'")
            assert (cause, rule) == ("external_stop", "deadman")
            assert it.rows("SELECT 1 FROM events WHERE kind IN ('workload.held', 'alert.market_fault')") == []
            assert it.rows("SELECT sum(market_losses + starts_failed) FROM hosts") == [(0.0,)]
            assert it.rows("SELECT scope FROM cooldowns WHERE scope IN ('host', 'owner')") == []
            assert it.rents() == 1
            count = len(it.stops())
            await it.passes(HOUR / 4)
            assert (it.states(), len(it.stops())) == (["running"], count)
