"""Stormy hours: three pieces of work under guards in a bidding war, each loss a SIGKILL; all end as if there were none.

Daemon, guards and work are programs, and talk to market and bucket over TCP, on clocks that run thirty times as fast.
The market is simulated. In the first all three count; in the others one is a PyTorch loop and one is Hugging Face's
Trainer, on the CPU and with tiny models, where `make frameworks` installed them.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent.simulator import climate_files
from agent.simulator.processes.container_process import ContainerProcess, Start
from agent.simulator.simulated_clock import ScaledClock
from agent.simulator.vast.world import World
from tests.support import guarded_fleet, key_leaks, programs, recipes, s3_servers, stormy_work
from tests.support.guarded_fleet import GuardedFleet, OwnRoots
from tests.support.market import START
from tests.support.programs import LIVE
from tests.support.s3_server import S3Server
from tests.support.steered import Simulator
from tests.support.stormy_work import DISK, StormyWork

SPEED = 30.0
SLOTS = 3
PAUSE_SECONDS = 0.1
"""Of our time: a step is about three seconds of the market's."""
STEP_SECONDS = PAUSE_SECONDS * SPEED
SINGLE = "checkpoint.pt"
"""The file that a checkpoint of one file is; its name in the bucket is that of its path alone."""
LOOK_SECONDS = 60.0
"""Of the market's time, two seconds of ours: a guard's looks and a busy machine add so much to a loss."""
OVERTIME = 4.0
"""Work that is lost and done again may take so many times as long as without any loss."""
AFTERWARDS_SECONDS = 900.0
BIDS = """\
strategy = "patient"
on_demand_if_cheaper = false
leave_after = "never"
"""
"""A lease on demand is never lost, and none leaves by itself."""
SETTINGS = f"""{LIVE.partition("[workloads.")[0].replace('"5s"', '"15s"')}\
[strategies]
directory = "strategies"
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """One start of the work in a slot, as `train/0`: when it had done which step, and its longest interval."""

    slot: str
    lease: str
    path: Path
    interval_seconds: float

    def steps(self) -> list[tuple[int, float]]:
        """Return each step it did with the moment of ours; the first is where it began."""
        lines = self.path.read_text().splitlines(keepends=True) if self.path.exists() else []
        words = (line.split() for line in lines if line.endswith("\n"))
        return [(int(step), float(at)) for step, at in words]


class WitnessedDisks(OwnRoots):
    """Containers whose disk is at the configured place, and whose work records each step beside it."""

    def __init__(self, clock: ScaledClock, place: Path) -> None:
        super().__init__(clock, speed=SPEED, folder=place / "disks", isolates=True, most_running=2 * SLOTS)
        self._place = place
        self.runs: list[Run] = []

    def start(self, process: ContainerProcess, start: Start, **more: Any) -> None:
        def own(text: str) -> str:
            return text.replace(DISK, str(process.place))

        witness = self._place / f"steps-{len(self.runs)}"
        env = {name: own(text) for name, text in start.env.items()}
        env |= {"WITNESS": str(witness), "HOME": str(process.place), **recipes.ENVIRONMENT}
        told = json.loads(env["GPUBID_GUARD"])
        self.runs.append(Run(_slot(told), told["lease"], witness, _longest_interval(env)))
        super().start(process, Start([own(word) for word in start.command], own(start.script), env), **more)


def _slot(told: Mapping[str, Any]) -> str:
    root: str = told["bucket"]["root"]
    return "/".join(root.split("/")[-3:-1])


def _longest_interval(env: Mapping[str, str]) -> float:
    by_age = (pair.partition(":")[2] for pair in env["GPUBID_CHECKPOINT_BY_AGE"].split())
    return max(map(float, [env["GPUBID_CHECKPOINT_SECONDS"], *by_age]))


@dataclasses.dataclass(frozen=True)
class Storm(GuardedFleet):
    """A guarded fleet, and the steps of its work."""

    registry: WitnessedDisks

    def slots(self) -> dict[str, list[Run]]:
        """Return the starts that did any work, by slot."""
        runs = sorted((run for run in self.registry.runs if run.steps()), key=lambda run: run.slot)
        return {slot: list(found) for slot, found in itertools.groupby(runs, key=lambda run: run.slot)}

    async def objects(self, part: str) -> Iterator[Any]:
        """Return the notes whose name has a part."""
        names = [name for name in await asyncio.to_thread(self.server.names) if re.search(part, name)]
        return iter([json.loads(await asyncio.to_thread(self.server.get, name)) for name in names])

    async def done(self) -> int:
        return sum(bool(note["done"]) for note in await self.objects(r"/end\.json$"))

    def losses(self) -> int:
        """Return how often work was lost without a word."""
        ((count,),) = self.rows(
            "SELECT count(*) FROM events WHERE kind IN ('lease.interrupted', 'lease.ended') AND cause IS NOT NULL"
        )
        return int(count)


@contextlib.asynccontextmanager
async def storm(place: Path, seed: int, works: Sequence[StormyWork], steps: int) -> AsyncIterator[Storm]:
    clock = ScaledClock(START, SPEED)
    environment = guarded_fleet.environment(place, clock, SPEED)
    registry = WitnessedDisks(clock, place)
    world = World(climate_files.named("real_processes"), seed=seed, start=START, hosts=60)
    with s3_servers.running("moto", place / "store") as store:
        server = S3Server(store.url)
        async with Simulator(world, clock, seed=seed, processes=registry) as simulator:
            tables = [work.table(server.url, steps, PAUSE_SECONDS) for work in works]
            (place / "strategies").mkdir(parents=True)
            (place / "strategies" / "bids.toml").write_text(BIDS)
            (place / "agent.toml").write_text(SETTINGS.format(url=simulator.vast_url) + "".join(tables))
            # Its first answer takes a second, and half a minute on these clocks.
            await asyncio.to_thread(server.names)
            async with programs.daemon(place, **environment):
                yield Storm(place, simulator, server, registry)


async def weathered(place: Path, seed: int, works: Sequence[StormyWork], hours: float) -> int:
    """Let the work of so many hours in each slot end, judge it, and return how many losses it had.

    A person lets go on what is held.
    """
    steps, settled = round(hours * 3600 / STEP_SECONDS), set[int]()
    async with storm(place, seed, works, steps) as it:
        until, advised, is_checked = it.now() + hours * OVERTIME * 3600, dict[str, float](), False
        while await it.done() < SLOTS:
            assert it.now() < until, f"not done: {it.slots()}"
            for note in await it.objects(r"/advice-[^/]*\.json$"):
                longest = max(interval for _, interval in note["by_age"])
                advised[note["lease"]] = max(longest, advised.get(note["lease"], 0.0))
            if it.slots() and not is_checked:
                is_checked = await asyncio.to_thread(_shows_no_key, it)
            # Before a container works there may be no ledger yet.
            if it.slots():
                await _settle(it, settled)
            await asyncio.sleep(1.0)
        assert is_checked
        rents, starts = it.rents(), len(it.registry.runs)
        await it.simulator.clock.sleep(AFTERWARDS_SECONDS)
        assert (it.rents(), len(it.registry.runs)) == (rents, starts), "a run began again after its end"
        assert [c for c in it.simulator.world.contracts.values() if c.ended is None] == []
        slots = it.slots()
        assert slots.keys() == {f"{work.name}/{number}" for work in works for number in range(work.slots)}
        for work, slot in ((work, slot) for work in works for slot in slots if slot.startswith(f"{work.name}/")):
            found = work.result(await _restored(it, slot, place / "restored" / slot), steps)
            assert (slot, found) == (slot, await asyncio.to_thread(work.alone, steps))
            for before, after in itertools.pairwise(slots[slot]):
                _judge(before, after, await _upload_seconds(it), advised.get(before.lease, 0.0))
        return it.losses()


async def _settle(it: Storm, settled: set[int]) -> None:
    """Let a slot that is held go on, as a person would: the market keeps no record of some of its losses (rule 8)."""
    for event, slot in it.rows(
        "SELECT event_id, workload || '/' || slot FROM events WHERE kind = 'workload.held' ORDER BY event_id"
    ):
        if event not in settled:
            settled.add(event)
            ran = await programs.gpubid(it.place, "resume", slot)
            assert ran.code == 0, ran.out + ran.err


def _shows_no_key(it: Storm) -> bool:
    """Find the key of the market's account nowhere in the containers; False where none is at work now."""
    shown = dict(key_leaks.shown(it.place / "disks"))
    is_seen = any(b"GPUBID_BUCKET_SECRET=" in content for content in shown.values())
    assert [name for name, content in shown.items() if it.simulator.gate.key.encode() in content] == []
    return is_seen


def _judge(before: Run, after: Run, upload_seconds: float, advised_seconds: float) -> None:
    """The work that is repeated after the loss took at most an interval, also of a later advice, and an upload."""
    did, (began, _) = before.steps(), after.steps()[0]
    assert began >= did[0][0], "a checkpoint that was restored before is not there any more"
    again = [at for step, at in did if step >= began]
    lost_seconds = (again[-1] - again[0]) * SPEED if again else 0.0
    most = max(before.interval_seconds, advised_seconds) + upload_seconds + LOOK_SECONDS
    assert lost_seconds <= most, (before, after)


async def _upload_seconds(it: Storm) -> float:
    return max([beat["upload_seconds"] or 0.0 for beat in await it.objects(r"/beat-[^/]*\.json$")], default=0.0)


async def _restored(it: Storm, slot: str, folder: Path) -> Path:
    """Write the files of a slot's last checkpoint into a folder, and return it."""
    (latest,) = await it.objects(rf"/{slot}/1/latest\.json$")
    root = f"/{slot}/1/{latest['manifest'].removesuffix('.json')}/"
    for name in await asyncio.to_thread(it.server.names):
        _, found, path = name.partition(root)
        if found:
            (_, *below) = path.split("/")
            place = folder.joinpath(*below) if below else folder / SINGLE
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(await asyncio.to_thread(it.server.get, name))
    return folder


# On two cores beside other work an hour took 222 s, nearly all of them waiting.
@pytest.mark.nightly
@pytest.mark.long(250)
async def test_an_hour_of_storm_changes_no_result(tmp_path: Path) -> None:
    works = [stormy_work.counters(SLOTS)]
    assert await weathered(tmp_path, seed=6, works=works, hours=1.0) > 0, "no loss: this proves nothing"


@pytest.mark.nightly
@pytest.mark.skipif(not recipes.IS_HERE, reason=recipes.WHY_NOT)
@pytest.mark.long(300)
async def test_an_hour_of_storm_changes_no_result_of_a_framework(tmp_path: Path) -> None:
    works = stormy_work.of_all_kinds()
    assert await weathered(tmp_path, seed=6, works=works, hours=0.5) > 0, "no loss: this proves nothing"


@pytest.mark.nightly
@pytest.mark.long(2400)
async def test_six_hours_of_storm_change_no_result(tmp_path: Path) -> None:
    two = asyncio.Semaphore(2)
    works = stormy_work.of_all_kinds() if recipes.IS_HERE else [stormy_work.counters(SLOTS)]

    async def one(seed: int) -> int:
        async with two:
            return await weathered(tmp_path / str(seed), seed, works, hours=6.0)

    assert sum(await asyncio.gather(*map(one, range(1, 6)))) > 0
