"""A market may charge more for the disk of a stopped instance: it is counted as charged, paused, outbid and resumed."""

import dataclasses
from pathlib import Path

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support.scene import STILL
from tests.support.world import rehearsed, work

DISK = work(checkpoint=Checkpoint(place=CheckpointPlace.DISK))


@pytest.mark.parametrize("factor", [1.5, 2.5])
async def test_a_paused_disk_counts_as_charged(tmp_path: Path, factor: float) -> None:
    dear = dataclasses.replace(STILL, stopped_disk_factor=factor)
    async with rehearsed(tmp_path, climate=dear, workloads=(DISK,)) as world:
        lease = await world.until_running()
        await world.cycle(minutes=30)
        await world.app.say(Order("pause", "train"), "a person")
        await world.cycle(minutes=8 * 60)
        (held,) = world.leases()
        assert (held.lease_id, held.state) == (lease.lease_id, LeaseState.PAUSED)
        assert held.disk_rate.micros == pytest.approx(lease.disk_rate.micros * factor, abs=2)
        await world.app.say(Order("resume", "train"), "a person")
        await world.until_running()
        await world.cycle(minutes=30)
        assert world.lease().disk_rate.micros == pytest.approx(lease.disk_rate.micros, abs=2)
        await world.check()


async def test_an_outbid_lease_keeps_its_dearer_disk_in_the_count(tmp_path: Path) -> None:
    dear = dataclasses.replace(STILL, stopped_disk_factor=1.5)
    async with rehearsed(tmp_path, climate=dear, workloads=(DISK,)) as world:
        lease = await world.until_running()
        await world.cycle(minutes=15)
        world.rival(int(lease.host_id), bid=(world.contract().bid or 1.0) * 20)
        await world.cycle(minutes=3 * 60)
        await world.check()
