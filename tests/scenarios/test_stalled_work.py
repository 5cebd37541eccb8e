"""Work that hangs with busy GPUs is found: there is a warning, then it is restarted, moved, and held for a person."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.stall import OnStall, StallRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.ledger.tables.spend_rows import SpendKey
from agent.web.reading import verb_json
from tests.support.world import MINUTE, Rehearsed, rehearsed, work

AFTER = dt.timedelta(minutes=6)
HANGS = ("SIM_HANGS_AFTER", "600")
WARNED = "only a warning is given, and after another 6 min of this it is restarted in place"


def hanging(
    *then: OnStall, place: CheckpointPlace = CheckpointPlace.NONE, told: tuple[str, str] = HANGS, **changes: Any
) -> Workload:
    rule = StallRule(AFTER, then or tuple(OnStall))
    return work(environment=(told,), stalled=rule, checkpoint=Checkpoint(place=place), **changes)


async def stalls(world: Rehearsed) -> list[str]:
    return [event.reason.rpartition("; ")[2] for event in await world.events("lease.stalled")]


async def test_a_hang_is_warned_of_then_restarted_then_moved_then_held(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(hanging(),), poll=MINUTE) as world:
        first = await world.until_running()
        began = world.contract().running_since or 0.0
        await world.until(lambda: world.lease().stalled_since is not None, 30)
        lease = world.lease()
        assert lease.idle_since is None, "its GPUs are busy"
        assert lease.stalled_since is not None
        assert 0 <= lease.stalled_since.timestamp() - began - 600 <= 180
        assert 0 <= world.clock.time() - lease.stalled_since.timestamp() - AFTER.total_seconds() <= 120
        assert verb_json.slot(lease.slot, {}, (), world.leases())["why"] == (
            f"its work shows no progress since {lease.stalled_since:%H:%M} UTC at {lease.billing_rate}; {WARNED}"
        )
        await world.until(lambda: world.lease().restarts == 1, 10)
        assert world.lease().lease_id == first.lease_id
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 5)
        await world.until_running(20)
        assert world.lease().stalled_since is None
        await world.until(lambda: first.lease_id not in {each.lease_id for each in world.leases()}, 70)
        second = await world.until_running()
        assert second.host != first.host
        await world.until(lambda: bool(world.app.ledger.recollection(world.app.clock.now()).holds), 200)
        assert await stalls(world) == [
            WARNED,
            "it is restarted in place",
            "another host is tried",
            "its slot is held",
        ]
        [held] = await world.events("workload.held")
        assert "its work shows no progress since" in held.reason
        assert [event.kind for event in await world.events("alert.stalled")]
        rented = len(world.contracts())
        await world.cycle(minutes=30)
        assert len(world.contracts()) == rented, "rented again while it waits for a person"
        assert not any(contract.holds_gpu for contract in world.live())
        await world.app.say(Order("resume", "train/0"), "a person")
        await world.until(lambda: any(lease.stalled_since for lease in world.leases()), 40)
        assert (await stalls(world))[-1] == WARNED, "the first measure again"


async def test_work_that_goes_on_is_never_stalled(tmp_path: Path) -> None:
    asked = hanging(told=("SIM_HANGS_ONCE_AFTER", "never"))
    async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=45)
        assert not await world.events("lease.stalled")
        assert world.lease().stalled_at is None


async def test_work_that_goes_on_by_itself_is_warned_of_first_again(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(hanging(OnStall.WARN, OnStall.HOLD),), poll=MINUTE) as world:
        await world.until_running()
        await world.until(lambda: world.lease().stalled_since is not None, 30)
        world.contract().env = {}
        await world.until(lambda: world.lease().stalled_since is None, 5)
        assert len(await world.events("lease.progressed")) == 1
        world.contract().env = dict([HANGS])
        await world.until(lambda: world.lease().stalled_since is not None, 30)
        assert await stalls(world) == 2 * ["only a warning is given, and after another 6 min of this its slot is held"]


async def test_a_restart_that_helps_ends_it(tmp_path: Path) -> None:
    asked = hanging(OnStall.RESTART, OnStall.HOLD, told=("SIM_HANGS_ONCE_AFTER", "600"))
    async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
        held = await world.until_running()
        await world.cycle(minutes=50)
        assert world.lease().lease_id == held.lease_id
        assert world.lease().state is LeaseState.RUNNING
        assert await stalls(world) == ["it is restarted in place"]
        reader = await world.app.ledger.reader()
        [line] = await reader.spend_by(SpendKey.LEASE)
        assert 540 - 60 <= line.useful_seconds <= 660, "the ten minutes of the first stretch, without its hang"


@pytest.mark.parametrize("route", ["*", "PUT /instances/request_logs"], ids=["market", "log"])
async def test_nothing_stalls_in_the_dark_and_dark_time_does_not_count(tmp_path: Path, route: str) -> None:
    async with rehearsed(tmp_path, workloads=(hanging(OnStall.WARN),), poll=MINUTE) as world:
        await world.until_running()
        await world.cycle(minutes=12)
        dark = world.weather("server_error_before", route=route)
        await world.cycle(minutes=30)
        assert not await world.events("lease.stalled")
        world.simulator.weather.clear(dark)
        await world.cycle(minutes=2)
        assert not await world.events("lease.stalled")
        await world.cycle(minutes=5)
        assert await stalls(world) == ["only a warning is given"]


async def test_a_disk_with_the_only_copy_is_held_instead_of_moved(tmp_path: Path) -> None:
    asked = hanging(OnStall.MOVE, place=CheckpointPlace.DISK)
    async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
        held = await world.until_running()
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, 70)
        await world.cycle(minutes=30)
        assert world.lease().lease_id == held.lease_id
        [told] = await world.events("workload.held")
        assert "its disk may hold the only copy of work: copy it before `gpubid release train/0`" in told.reason
