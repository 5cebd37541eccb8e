"""Time in which nobody probed a lease does not count against it: not a dark market, and not a stop of the program."""

import datetime as dt
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from tests.support.world import MINUTE, Rehearsed, rehearsed, work

Absence = Callable[[Rehearsed, float], Awaitable[None]]
LOGS = "PUT /instances/request_logs"
LOST_LINE = ("SIM_READY_LINE", "epoch 0")
"""A container that prints another line than the awaited one, as one whose line has scrolled out of the log."""


def training(*told: tuple[str, str], place: CheckpointPlace = CheckpointPlace.DISK) -> Workload:
    ready = Readiness(ReadySign.LOG, dt.timedelta(minutes=15), line="training begins")
    return work(
        kind=WorkloadKind.BATCH,
        checkpoint=Checkpoint(place=place),
        ready=ready,
        environment=(("SIM_READY_AFTER", "300"), *told),
    )


async def go_dark(world: Rehearsed, minutes: float) -> None:
    dark = world.weather("server_error_before", route="*")
    await world.cycle(minutes=minutes)
    world.simulator.weather.clear(dark)


async def stop(world: Rehearsed, minutes: float) -> None:
    await world.restart(after_seconds=minutes * 60)


@pytest.mark.parametrize("absence", [go_dark, stop], ids=["a dark market", "a stop of the program"])
async def test_work_that_became_ready_meanwhile_goes_on(tmp_path: Path, absence: Absence) -> None:
    wants = training(("SIM_READY_LINE", "training begins"))
    async with rehearsed(tmp_path, workloads=(wants,), poll=MINUTE) as world:
        lease = await world.until_running()
        await world.cycle(minutes=2)
        await absence(world, 25)
        slow = world.weather("server_error_before", route=LOGS)
        await world.cycle(minutes=2)
        world.simulator.weather.clear(slow)
        await world.cycle(minutes=3)
        assert not await world.events("lease.not_ready")
        assert world.lease().lease_id == lease.lease_id
        assert world.lease().was_ready


@pytest.mark.parametrize("absence", [go_dark, stop], ids=["a dark market", "a stop of the program"])
async def test_a_disk_of_work_that_may_have_been_ready_meanwhile_is_left_to_a_person(
    tmp_path: Path, absence: Absence
) -> None:
    async with rehearsed(tmp_path, workloads=(training(LOST_LINE),), poll=MINUTE) as world:
        lease = await world.until_running()
        await world.cycle(minutes=2)
        await absence(world, 40)
        await world.cycle(minutes=10)
        assert not await world.events("lease.not_ready"), "it was probed for 12 minutes only"
        await world.cycle(minutes=60)
        [told] = await world.events("lease.not_ready")
        assert "nobody probed it" in told.reason
        assert "`gpubid release train/0`" in told.reason
        assert world.lease().lease_id == lease.lease_id


async def test_without_a_disk_to_lose_it_is_released_after_the_time_in_which_it_was_probed(tmp_path: Path) -> None:
    wants = training(LOST_LINE, place=CheckpointPlace.REMOTE)
    async with rehearsed(tmp_path, workloads=(wants,), poll=MINUTE) as world:
        lease = await world.until_running()
        await world.cycle(minutes=2)
        await go_dark(world, 40)
        await world.cycle(minutes=10)
        assert world.lease().lease_id == lease.lease_id
        await world.cycle(minutes=10)
        assert lease.lease_id not in {each.lease_id for each in world.leases()}
        [late] = await world.events("lease.not_ready")
        assert "shows no sign of work" in late.reason


async def test_work_that_was_probed_all_the_time_is_released_in_time(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(training(LOST_LINE),), poll=MINUTE) as world:
        lease = await world.until_running()
        await world.cycle(minutes=20)
        assert lease.lease_id not in {each.lease_id for each in world.leases()}
