"""Useful time starts when the workload says so; a lease that is never ready is left, and its host gets a cooldown."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Workload, WorkloadKind
from agent.ledger.tables.spend_rows import SpendKey
from tests.support.world import Rehearsed, rehearsed, work


def serving(sign: ReadySign, ready_after: str = "300", **changes: Any) -> Workload:
    ready = Readiness(sign, dt.timedelta(minutes=10), line="model is up", port=8000, path="/health")
    told = (("SIM_READY_AFTER", ready_after), ("SIM_READY_LINE", "the model is up now"))
    return work(ready=ready, ports=(8000,), environment=told, **changes)


async def useful_seconds(world: Rehearsed) -> float:
    reader = await world.app.ledger.reader()
    return sum(line.useful_seconds for line in await reader.spend_by(SpendKey.LEASE))


@pytest.mark.parametrize("sign", [ReadySign.LOG, ReadySign.PORT, ReadySign.HTTP])
async def test_useful_time_starts_when_ready(tmp_path: Path, sign: ReadySign) -> None:
    async with rehearsed(tmp_path, workloads=(serving(sign),)) as world:
        lease = await world.until_running()
        assert lease.ready_since is None
        await world.cycle(minutes=3)
        assert world.lease().ready_since is None, "ready before it was"
        await world.cycle(minutes=4)
        ready_since = world.lease().ready_since
        assert ready_since is not None
        started = world.contract().running_since
        assert started is not None
        assert 300 <= ready_since.timestamp() - started <= 380
        await world.cycle(minutes=50)
        world.market.stop(world.contract().contract_id)
        stopped = world.clock.time()
        await world.cycle(minutes=1)
        useful = await useful_seconds(world)
        assert 0 < useful <= stopped - ready_since.timestamp() + 30
        assert len(await world.events("lease.ready")) == 1


async def test_never_ready_is_left_and_its_host_rests(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(serving(ReadySign.HTTP, "never"),)) as world:
        held = await world.until_running()
        await world.cycle(minutes=15)
        [late] = await world.events("lease.not_ready")
        assert "shows no sign of work, its GPUs idle" in late.reason
        assert "8000 does not answer" in late.reason
        assert held.lease_id not in {lease.lease_id for lease in world.leases()}
        rests = world.app.ledger.recollection(world.clock.now()).expiring
        assert ("host", str(held.host)) in {rest.place for rest in rests}
        assert len({contract.slice.machine_id for contract in world.contracts()}) == len(world.contracts())


async def test_workload_that_is_ready_nowhere_is_held(tmp_path: Path) -> None:
    broken = serving(ReadySign.PORT, "never", max_failed_starts=3)
    async with rehearsed(tmp_path, workloads=(broken,)) as world:
        await world.cycle(minutes=120)
        assert len(world.contracts()) == 3
        assert world.live() == []
        [held] = await world.events("workload.held")
        assert "3 starts failed" in held.reason


async def test_a_line_of_the_log_ends_a_batch(tmp_path: Path) -> None:
    told = (("SIM_DONE_AFTER", "3600"), ("SIM_DONE_LINE", "all 90 epochs done"))
    batch = work(kind=WorkloadKind.BATCH, done_line="epochs done", environment=told)
    async with rehearsed(tmp_path, workloads=(batch,)) as world:
        await world.until_running()
        await world.cycle(minutes=55)
        assert world.lease().state is LeaseState.RUNNING
        await world.cycle(minutes=10)
        assert world.leases() == []
        [done] = await world.events("workload.done")
        assert done.reason == "train/0 is done by a line of its log"
        assert len(world.contracts()) == 1


async def test_a_batch_that_ends_without_its_line_is_held(tmp_path: Path) -> None:
    batch = work(kind=WorkloadKind.BATCH, done_line="epochs done", environment=(("SIM_EXIT_AFTER", "1800"),))
    async with rehearsed(tmp_path, workloads=(batch,)) as world:
        await world.until_running()
        await world.cycle(minutes=40)
        assert world.lease().state is LeaseState.PAUSED
        [held] = await world.events("workload.held")
        assert "its log does not say" in held.reason


async def test_idle_gpus_are_told_once(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(work(environment=(("SIM_IDLE_AFTER", "1800"),)),)) as world:
        await world.until_running()
        await world.cycle(minutes=90)
        [told] = await world.events("alert.idle")
        assert "train/0" in told.reason
