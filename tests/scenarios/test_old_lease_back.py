"""The old lease of a move comes back: one of the two leases goes, or a person is told that two bill for one slot."""

from pathlib import Path

import pytest

from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support.world import Rehearsed, rehearsed, work

ON_DISK = work(checkpoint=Checkpoint(place=CheckpointPlace.DISK))


async def moving(world: Rehearsed) -> int:
    """Let the host of the first start fall silent until another one is rented. Return the weather."""
    await world.cycle()
    await world.cycle()
    assert world.lease().state is LeaseState.STARTING
    silent = world.weather("host_offline", machine_id=world.contract().slice.machine_id)
    await world.until(lambda: len(world.leases()) == 2)
    return silent


async def test_the_new_lease_goes_if_the_old_one_works_again_before_it(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, seed=3, workloads=(ON_DISK,)) as world:
        silent = await moving(world)
        old, new = world.leases()
        world.simulator.weather.clear(silent)
        # The image of the new one loads for longer.
        stuck = world.weather("stuck_loading", contract_id=int(new.instance_id))
        await world.until(lambda: len(world.leases()) == 1, minutes=30)
        world.simulator.weather.clear(stuck)
        await world.cycle(minutes=20)
        assert (world.lease().lease_id, world.lease().state) == (old.lease_id, LeaseState.RUNNING)
        assert [each.contract_id for each in world.live() if each.holds_gpu] == [int(old.instance_id)]
        (gone,) = [each for each in await world.past_leases() if each.lease_id == new.lease_id]
        assert gone.end_reason == "old_is_back"


@pytest.mark.parametrize("kept", [0, 1])
async def test_two_that_ran_and_may_hold_the_only_checkpoint_are_told_to_a_person(tmp_path: Path, kept: int) -> None:
    async with rehearsed(tmp_path, seed=3, workloads=(ON_DISK,)) as world:
        silent = await moving(world)
        old, new = world.leases()
        world.simulator.weather.clear(silent)
        # No pass looks until both run.
        world.clock.advance(1800)
        world.market.advance_to(world.clock.time())
        assert sum(each.holds_gpu for each in world.live()) == 2
        await world.cycle(minutes=30)
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING, LeaseState.RUNNING]
        (alert,) = await world.events("alert.two_leases")
        assert old.lease_id in alert.reason
        assert new.lease_id in alert.reason
        (held,) = world.plans[-1].decisions
        assert held.reason.code == "two_leases"
        await world.app.say(Order("release", (new, old)[kept].lease_id), "a test")
        await world.cycle(minutes=5)
        assert (world.lease().lease_id, world.lease().state) == ((old, new)[kept].lease_id, LeaseState.RUNNING)
        assert sum(each.holds_gpu for each in world.live()) == 1
