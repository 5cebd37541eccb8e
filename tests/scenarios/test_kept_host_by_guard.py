"""One host for a whole array: the daemon, the market over HTTP, a bucket, and a real guard in a container."""

import asyncio
import dataclasses
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.hold import Word
from agent.domain.record.lease import LeaseState
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.guard_terms import Ask, GuardTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from tests.support import s3_server
from tests.support.programs import until
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, STILL, Rehearsed, rehearsed, work

REAL = dataclasses.replace(STILL, processes=True)
RATES = ("0.1", "0.2", "0.3")


async def there(server: S3Server, slot: int, begins: str) -> None:
    """Wait until a slot's folder in the bucket has an object. The market's time does not pass."""
    wanted = f"train/{FLEET}/sweep/{slot}/1/{begins}"

    async def is_there() -> bool:
        return any(name.startswith(wanted) for name in await asyncio.to_thread(server.names))

    await until(is_there, wanted)


def done(world: Rehearsed) -> set[str]:
    known = world.app.ledger.recollection(world.clock.now())
    return {each.target.spoken for each in known.holds if each.word is Word.DONE}


def runs(world: Rehearsed, slot: int) -> Callable[[], bool]:
    return lambda: [lease.slot.index for lease in world.leases() if lease.state is LeaseState.RUNNING] == [slot]


@pytest.mark.nightly
async def test_three_tasks_end_one_after_another_in_one_container(tmp_path: Path) -> None:
    kept, seen = tmp_path / "ckpt", tmp_path / "seen"
    kept.mkdir()
    script = (
        f'echo "$GPUBID_SLOT $LR $(cat {kept}/result 2>/dev/null)" >> {seen}; echo "of $GPUBID_SLOT" > {kept}/result; '
        f"while [ ! -e {tmp_path}/go-$GPUBID_SLOT ]; do sleep 0.1; done"
    )
    (tmp_path / "fleet").mkdir()
    with s3_server.served() as server:
        array = work(
            "sweep",
            kind=WorkloadKind.BATCH,
            slots=3,
            array=ArrayTerms(1, task_hours=0.1),
            values=(("LR", RATES),),
            command=shlex.join(["sh", "-c", script]),
            environment=(("GPUBID_GUARD_HOME", "guard"), ("SIM_SPEED", "50")),
            guard=GuardTerms((str(kept),), ask=Ask.NONE, bucket=server.place(), keep_host=True),
            checkpoint=Checkpoint(place=CheckpointPlace.REMOTE),
            image_gb=60.0,
        )
        where: dict[str, Any] = {"climate": REAL, "disks": tmp_path / "disks", "is_wired": True}
        async with rehearsed(tmp_path / "fleet", workloads=(array,), credential=lambda _: SECRET, **where) as world:
            for slot in range(3):
                await world.until(runs(world, slot), 30)
                await there(server, slot, "beat-")
                await world.cycle(minutes=2)
                (tmp_path / f"go-{slot}").touch()
                await there(server, slot, "end.json")
                await world.until(lambda slot=slot: f"sweep/{slot}" in done(world), 5)  # type: ignore[misc]
            await world.until(lambda: not world.live(), 5)
            assert len(world.contracts()) == 1
            assert [event.slot for event in await world.events("lease.reassigned")] == [1, 2]
            # No task found the files of the one before, and each had its own value.
            assert seen.read_text().splitlines() == [f"{slot} {rate} " for slot, rate in enumerate(RATES)]
