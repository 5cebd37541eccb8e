"""A reload that adds a sign of readiness releases no lease that has worked without it."""

import dataclasses
import datetime as dt
from pathlib import Path

import pytest

from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from tests.support.world import MINUTE, Rehearsed, rehearsed, strategies, work

SIGNS = [
    Readiness(ReadySign.LOG, dt.timedelta(minutes=15), line="printed hours ago"),
    Readiness(ReadySign.PORT, dt.timedelta(minutes=15), port=8000),
]


def training(place: CheckpointPlace = CheckpointPlace.DISK) -> Workload:
    return work(kind=WorkloadKind.BATCH, checkpoint=Checkpoint(place=place))


async def take(world: Rehearsed, wants: Workload, *, is_restart: bool) -> None:
    """Let the program take a changed workload, by a reload or by a start with the new file."""
    config = dataclasses.replace(world.config, workloads=(wants,))
    [noted] = world.app.findings(config)
    assert (noted.key, noted.code, noted.is_refusal) == ("workloads.train.ready", "new_sign", False)
    assert "`gpubid release train/0`" in noted.sentence
    if is_restart:
        world.config = config
        await world.restart(after_seconds=20)
    else:
        world.app.reload(config, strategies())


@pytest.mark.parametrize("is_restart", [False, True], ids=["reload", "start"])
@pytest.mark.parametrize("place", [CheckpointPlace.DISK, CheckpointPlace.REMOTE])
@pytest.mark.parametrize("sign", SIGNS, ids=["log", "port"])
async def test_a_lease_that_worked_before_the_sign_came_is_left_to_a_person(
    tmp_path: Path, sign: Readiness, place: CheckpointPlace, *, is_restart: bool
) -> None:
    before = training(place)
    async with rehearsed(tmp_path, workloads=(before,), poll=MINUTE) as world:
        lease = await world.until_running()
        await world.cycle(minutes=60)
        await take(world, dataclasses.replace(before, ready=sign, ports=(8000,)), is_restart=is_restart)
        await world.cycle(minutes=10)
        assert not await world.events("lease.not_ready"), "sooner than it could show the sign"
        await world.cycle(minutes=30)
        [told] = await world.events("lease.not_ready")
        why = "it ran before without a sign of readiness, so it goes on: `gpubid release train/0` ends it"
        assert told.reason.endswith(why)
        assert world.lease().lease_id == lease.lease_id


async def test_the_running_time_of_such_a_lease_counts_on(tmp_path: Path) -> None:
    limit = RunningLimit(dt.timedelta(hours=2), LimitOf.LEASE, AtLimit.PAUSE)
    before = dataclasses.replace(training(), max_running=(limit,))
    async with rehearsed(tmp_path, workloads=(before,), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=60)
        await take(world, dataclasses.replace(before, ready=SIGNS[0]), is_restart=False)
        await world.cycle(minutes=70)
        assert world.lease().paused_by_us, "it ran for more than two hours"
