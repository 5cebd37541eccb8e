"""A demand over real HTTP: slots follow it upwards at once and downwards slowly; silence changes nothing."""

import dataclasses
import datetime as dt
from pathlib import Path

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.slot_demand import Demand, DemandFrom
from agent.domain.work.order import Order
from agent.domain.work.run_times.run_window import Outside, WindowRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support.queue_page import served
from tests.support.scene import strategies
from tests.support.world import MINUTE, Rehearsed, rehearsed, work

SHRINK = dt.timedelta(minutes=10)


async def cycle(world: Rehearsed, minutes: float = 0.0) -> None:
    until = world.clock.time() + minutes * 60
    while True:
        await world.cycle()
        await world.app.demand.settle()
        if world.clock.time() >= until:
            return


def running(world: Rehearsed) -> int:
    return sum(lease.state in {LeaseState.RUNNING, LeaseState.STARTING} for lease in world.leases())


async def test_slots_follow_a_queue(tmp_path: Path) -> None:
    async with served() as page:
        terms = Demand(0, DemandFrom.HTTP, page.url, per_slot=4, shrink_after=SHRINK)
        asked = work(slots=4, demand=terms, checkpoint=Checkpoint(place=CheckpointPlace.NONE))
        async with rehearsed(tmp_path, workloads=(asked,)) as world:
            await cycle(world, 2)
            assert world.leases() == [], "no task, no slot"
            page.tasks = "7"
            await cycle(world, 2)
            assert running(world) == 2
            page.tasks = "100"
            await cycle(world, 2)
            assert running(world) == 4, "never more than the range"
            page.tasks = "3"
            await cycle(world, 8)
            assert running(world) == 4, "not before every answer of ten minutes wanted fewer"
            await cycle(world, 4)
            assert running(world) == 1
            page.status = 500
            await cycle(world, 30)
            assert running(world) == 1, "silence shrinks nothing"
            (alert,) = await world.events("alert.demand_unknown")
            assert "the demand of train has no answer: it answers 500; the last answer is of" in alert.reason
            (notice,) = (each for each in world.app.notices() if each.code == "demand_unknown")
            assert notice.about == "train"
            assert world.app.demand.silences() == {"train": pytest.approx(30 * 60, abs=120)}
            page.status, page.tasks = 200, "0"
            await cycle(world, 8)
            assert running(world) == 1, "after a gap the ten minutes begin anew"
            assert world.app.demand.silences() == {"train": 0.0}
            await cycle(world, 5)
            assert world.leases() == []


async def test_a_restart_and_flapping_shrink_nothing(tmp_path: Path) -> None:
    async with served() as page:
        page.tasks = "12"
        terms = Demand(0, DemandFrom.HTTP, page.url, per_slot=4, shrink_after=SHRINK)
        asked = work(slots=4, demand=terms, checkpoint=Checkpoint(place=CheckpointPlace.NONE))
        async with rehearsed(tmp_path, workloads=(asked,)) as world:
            await cycle(world, 2)
            assert running(world) == 3
            page.tasks = "0"
            await world.restart(60)
            await cycle(world, 8)
            assert running(world) == 3, "the daemon does not know what was answered before"
            for tasks in ("12", "0") * 4:
                page.tasks = tasks
                await cycle(world, 4)
            assert running(world) == 3, "it flaps"
            assert len(await world.past_leases()) == 3


async def test_a_hand_sets_the_slots_for_a_time(tmp_path: Path) -> None:
    async with served() as page:
        page.tasks = "4"
        terms = Demand(0, DemandFrom.HTTP, page.url, per_slot=4, shrink_after=SHRINK)
        asked = work(slots=4, demand=terms, checkpoint=Checkpoint(place=CheckpointPlace.NONE))
        async with rehearsed(tmp_path, workloads=(asked,)) as world:
            await cycle(world, 2)
            assert running(world) == 1
            said, _ = await world.app.say(Order("demand", "train", dt.timedelta(hours=1), slots=3), "me")
            assert said.startswith("train is to have 3 slot(s) until ")
            await cycle(world, 2)
            assert running(world) == 3
            await world.restart()
            await cycle(world, 2)
            assert running(world) == 3, "the ledger keeps it"
            world.is_checked = False  # the world's own labels keep the old name
            renamed = dataclasses.replace(asked, name="fit", was="train")
            world.app.reload(dataclasses.replace(world.config, workloads=(renamed,)), strategies())
            await cycle(world, 2)
            assert (running(world), {lease.slot.workload for lease in world.leases()}) == (3, {"fit"})
            counted = world.app.ledger.recollection(world.clock.now()).tallies
            assert {tally.workload for tally in counted} == {"fit"}, "its moves of today are bounded on"
            await world.app.say(Order("demand", "fit"), "me")
            await cycle(world, 15)
            assert running(world) == 1


async def test_a_disk_that_is_not_wanted_does_not_wait_for_the_next_window(tmp_path: Path) -> None:
    """All disks of a workload without tasks billed from Friday evening to Monday."""
    until_one = WindowRule("0 0 * * *", dt.timedelta(hours=1))
    async with served() as page:
        page.tasks = "8"
        terms = Demand(0, DemandFrom.HTTP, page.url, per_slot=4, shrink_after=SHRINK)
        kept = Checkpoint(place=CheckpointPlace.REMOTE)
        asked = work(slots=4, demand=terms, checkpoint=kept, windows=(until_one,), outside=Outside.PAUSE)
        async with rehearsed(tmp_path, workloads=(asked,), poll=MINUTE) as world:
            await cycle(world, 65)
            assert [lease.state for lease in world.leases()] == [LeaseState.PAUSED] * 2, "its window is over"
            page.tasks = "1"
            await cycle(world, 14)
            assert [lease.state for lease in world.leases()] == [LeaseState.PAUSED], "one is still wanted"
