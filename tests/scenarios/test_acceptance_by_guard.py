"""The check of a host from end to end: the daemon, the market over HTTP, a bucket, and a real guard in a container."""

import asyncio
import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.lease import Lease
from agent.domain.work.guard_terms import Accept, GuardTerms
from tests.support import counter, s3_server
from tests.support.programs import until
from tests.support.s3_server import SECRET, S3Server
from tests.support.world import FLEET, STILL, Rehearsed, rehearsed, work

FOLDER = f"train/{FLEET}/train/0/1"
REAL = dataclasses.replace(STILL, processes=True)


async def found(server: S3Server, held: Lease) -> dict[str, Any]:
    """Wait until the guard of a lease has written its report, and return it. The market's time does not pass."""
    name = f"{FOLDER}/acceptance-{held.intent_id}.json"

    async def is_there() -> bool:
        return name in await asyncio.to_thread(server.names)

    await until(is_there, name)
    return dict(json.loads(await asyncio.to_thread(server.get, name)))


@pytest.mark.long(20)
async def test_a_host_that_lies_about_its_gpu_is_rejected_and_a_sound_one_is_kept(tmp_path: Path) -> None:
    words = shlex.join(counter.python("import time; time.sleep(900)"))
    with s3_server.served() as server:
        terms = GuardTerms(("/nowhere/ckpt",), bucket=server.place(), accept=Accept.REJECT)
        guarded = work(command=words, guard=terms, environment=(("GPUBID_GUARD_HOME", "guard"),))
        where: dict[str, Any] = {"climate": REAL, "disks": tmp_path / "disks", "is_wired": True}
        (tmp_path / "fleet").mkdir()
        async with rehearsed(tmp_path / "fleet", workloads=(guarded,), credential=lambda _: SECRET, **where) as world:
            world.weather("gpu_lie", gpu="NVIDIA GeForce GTX 1070")
            first = await world.until_running()
            note = await found(server, first)
            assert (note["tool"], note["gpu_count"]) == ("ok", first.gpus)
            world.still()
            await world.until(lambda: first.lease_id not in {lease.lease_id for lease in world.leases()}, 10)
            second = await world.until_running()
            assert second.host_id != first.host_id
            assert starts_failed(world, first) > 0.9
            (event,) = await world.events("lease.not_ready")
            assert event.reason == f"not_as_rented: its GPU is NVIDIA GeForce GTX 1070 and not {first.gpu}"
            assert (await found(server, second))["gpus"][0]["name"] == f"NVIDIA GeForce {second.gpu}"
            await world.cycle(minutes=30)
            assert world.lease().lease_id == second.lease_id
            assert starts_failed(world, second) == 0.0
            process = world.contract().process
            assert process is not None
            assert process.is_busy


def starts_failed(world: Rehearsed, held: Lease) -> float:
    record = world.app.ledger.recollection(world.clock.now()).hosts_on(held.market).get(held.host_id)
    return record.starts_failed if record is not None else 0.0
