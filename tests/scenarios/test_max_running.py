"""Work that has run as long as it may: paused, released, done, or moved; told before, and never refilled."""

import dataclasses
import datetime as dt
from pathlib import Path

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support.world import MINUTE, POLL, rehearsed, work

HOUR = dt.timedelta(hours=1)


def limited(then: AtLimit, of: LimitOf = LimitOf.WORKLOAD, *, place: str = "remote", slots: int = 1) -> Workload:
    limit = RunningLimit(HOUR, of, then, dt.timedelta(minutes=20))
    return work(max_running=(limit,), checkpoint=Checkpoint(place=CheckpointPlace(place)), slots=slots)


async def test_a_workload_is_told_and_then_paused_and_stays_so(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(limited(AtLimit.PAUSE, place="disk"),), poll=MINUTE) as world:
        held = await world.until_running()
        await world.cycle(minutes=38)
        assert not await world.events("alert.max_running")
        await world.cycle(minutes=4)
        [told] = await world.events("alert.max_running")
        assert told.reason == "train: 40 min of 1 h run; in about 20 min it is paused (max_running)"
        await world.cycle(minutes=17)
        assert world.lease().state is LeaseState.RUNNING
        await world.cycle(minutes=3)
        assert (world.lease().lease_id, world.lease().state) == (held.lease_id, LeaseState.PAUSED)
        await world.cycle(minutes=120)
        assert not world.contract().holds_gpu
        assert len(world.contracts()) == 1
        [decision] = world.plans[-1].decisions
        assert decision.reason.code == "max_running"
        assert decision.reason.sentence.startswith("train has run 1 h of 1 h, so it is paused; raise max_running in ")


@pytest.mark.parametrize("then", [AtLimit.RELEASE, AtLimit.DONE])
async def test_a_workload_is_released_and_never_refilled(tmp_path: Path, then: AtLimit) -> None:
    async with rehearsed(tmp_path, workloads=(limited(then, slots=2),), poll=POLL) as world:
        await world.until_running()
        await world.cycle(minutes=12)
        [told] = await world.events("alert.max_running")
        assert " in about 20 min it is " in told.reason, "by the clock, with two leases"
        await world.cycle(minutes=20)
        assert not world.live(), "two slots, half an hour each"
        await world.cycle(minutes=60)
        assert len(world.contracts()) == 2
        ends = await world.events("workload.done")
        assert [each.reason for each in ends] == (
            ["train is done by its max_running: 1 h of 1 h run"] if then is AtLimit.DONE else []
        )


async def test_a_lease_moves_and_the_next_one_counts_from_nothing(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(limited(AtLimit.MOVE, LimitOf.LEASE),), poll=MINUTE) as world:
        first = await world.until_running()
        await world.until(lambda: first.lease_id not in {lease.lease_id for lease in world.leases()}, 120)
        second = world.lease()
        assert (second.state, second.host_id != first.host_id) == (LeaseState.RUNNING, True)
        await world.cycle(minutes=40)
        assert world.lease().lease_id == second.lease_id


async def test_a_lease_is_done_by_its_time_and_its_slot_stays_empty(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(limited(AtLimit.DONE, LimitOf.LEASE),), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=100)
        assert not world.live()
        assert len(world.contracts()) == 1
        [end] = await world.events("workload.done")
        assert end.reason == "train/0 is done by its max_running: 1 h of 1 h run"


async def test_running_time_outlasts_interruptions_and_restarts(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(limited(AtLimit.PAUSE),), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=30)
        world.rival(world.contract().slice.machine_id)
        await world.until(lambda: len(world.contracts()) > 1, 60)
        await world.until_running()
        await world.restart(60)
        await world.cycle(minutes=20)
        assert world.lease().state is LeaseState.RUNNING
        await world.until(lambda: world.plans[-1].decisions[0].reason.code == "max_running", 20)
        ran = dt.timedelta(microseconds=sum(lease.ran_micros for lease in await world.past_leases()))
        assert HOUR <= ran <= HOUR + dt.timedelta(minutes=1)


async def test_time_before_the_first_sign_of_readiness_does_not_count(tmp_path: Path) -> None:
    ready = Readiness(ReadySign.LOG, dt.timedelta(hours=3), line="startup complete")
    told = (("SIM_READY_AFTER", "3600"),)
    asked = dataclasses.replace(limited(AtLimit.PAUSE), ready=ready, environment=told)
    async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=90)
        assert world.lease().state is LeaseState.RUNNING


async def test_a_dark_market_ends_nothing(tmp_path: Path) -> None:
    """It cannot be listed; it would take a pause."""
    async with rehearsed(tmp_path, workloads=(limited(AtLimit.PAUSE),), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=50)
        dark = world.weather("server_error_before", route="GET /instances")
        await world.cycle(minutes=30)
        assert world.lease().state is LeaseState.RUNNING
        world.simulator.weather.clear(dark)
        await world.cycle(minutes=2)
        assert world.lease().state is LeaseState.PAUSED
