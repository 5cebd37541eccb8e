"""GPUs that do nothing: an alert, or a slot that is held for a person with its lease paused or released."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support.world import MINUTE, POLL, rehearsed, work

HALF_AN_HOUR = dt.timedelta(minutes=30)


def idling(then: OnIdle, place: CheckpointPlace = CheckpointPlace.DISK, **changes: Any) -> Workload:
    told = (("SIM_IDLE_AFTER", "1800"),)
    rule = IdleRule(lasts=HALF_AN_HOUR, then=then)
    return work(environment=told, idle=rule, checkpoint=Checkpoint(place=place), **changes)


async def test_idle_gpus_are_paused_and_their_slot_waits_for_a_person(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(idling(OnIdle.PAUSE),), poll=POLL) as world:
        await world.until_running()
        await world.cycle(minutes=58)
        assert world.lease().state is LeaseState.RUNNING, "not idle for half an hour yet"
        await world.cycle(minutes=60)
        assert world.lease().state is LeaseState.PAUSED
        assert not world.contract().holds_gpu
        [held] = await world.events("workload.held")
        assert held.reason.startswith("train/0 is held: its GPUs are used below 5 % since 00:32 UTC at $0.0885/h; ")
        assert "`gpubid resume train/0`" in held.reason


@pytest.mark.parametrize("place", CheckpointPlace)
async def test_idle_gpus_are_released_but_never_the_only_copy_of_work(tmp_path: Path, place: CheckpointPlace) -> None:
    async with rehearsed(tmp_path, workloads=(idling(OnIdle.RELEASE, place),), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=120)
        assert len(await world.events("workload.held")) == 1
        assert len(world.contracts()) == 1, "rented again while it waits for a person"
        assert bool(world.live()) is (place is CheckpointPlace.DISK)
        assert not any(contract.holds_gpu for contract in world.live())


async def test_a_dark_market_counts_as_no_idleness(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(idling(OnIdle.PAUSE),), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=40)
        dark = world.weather("server_error_before")
        await world.cycle(minutes=60)
        world.simulator.weather.clear(dark)
        await world.cycle(minutes=20)
        assert world.lease().state is LeaseState.RUNNING
        assert not await world.events("workload.held")
        await world.cycle(minutes=20)
        assert world.lease().state is LeaseState.PAUSED
