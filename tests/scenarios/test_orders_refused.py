"""A market that takes no order of some kind any more: it is not repeated for ever, and an alert names the fix."""

from pathlib import Path

import pytest

from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.markets.vast.market import VastMarket
from tests.support import builders
from tests.support.both import both
from tests.support.scene import heavy
from tests.support.world import Rehearsed, rehearsed, work


async def told(world: Rehearsed) -> list[str]:
    return [event.reason for event in await world.events("alert.order_refused")]


@pytest.mark.parametrize("place", [CheckpointPlace.REMOTE, CheckpointPlace.DISK])
async def test_a_raise_that_is_never_taken_is_tried_each_quarter_of_an_hour_and_left_if_the_disk_may_be(
    tmp_path: Path, place: CheckpointPlace
) -> None:
    """It was asked for at every poll, and nothing else was tried for its slot."""
    works = (heavy(checkpoint=Checkpoint(place=place, size_gb=2)),)
    async with rehearsed(tmp_path, workloads=works) as world:
        first = await world.until_running()
        contract = world.contract()
        world.weather("invalid_request", route="PUT /instances/bid_price")
        world.rival(contract.slice.machine_id, bid=round((contract.bid or 0.0) + 0.02, 3))
        await world.cycle(minutes=100)
        raises = [intent for intent in await world.intents(IntentKind.REBID) if intent.lease_id == first.lease_id]
        assert 2 <= len(raises) <= 8
        if place is CheckpointPlace.DISK:
            (lease,) = world.leases()
            assert (lease.lease_id, lease.state) == (first.lease_id, LeaseState.PAUSED)
            (sentence,) = await told(world)
            assert f"refuses every order to raise the bid of {first.lease_id}" in sentence
            assert f"`gpubid release {first.lease_id}`" in sentence
        else:
            assert len(raises) == 3
            (lease,) = world.leases()
            assert (lease.lease_id != first.lease_id, lease.state) == (True, LeaseState.RUNNING)


async def test_a_release_that_is_never_taken_pauses_the_gpu_and_tells_what_bills(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(work(),)) as world:
        lease = await world.until_running()
        world.weather("invalid_request", route="DELETE /instances")
        await world.app.say(Order("release", lease.lease_id), "me")
        await world.cycle(minutes=14)
        assert not world.contract().holds_gpu
        assert not await told(world)
        await world.cycle(minutes=16)
        (sentence,) = await told(world)
        assert f"the release of {lease.lease_id}" in sentence
        assert f"end instance {lease.instance_id} at the market itself" in sentence
        world.still()
        await world.until(lambda: lease.lease_id not in {each.lease_id for each in world.leases()}, minutes=5)
        assert len(await told(world)) == 1


async def test_a_release_that_is_confirmed_and_never_carried_out_pauses_the_gpu_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each confirmation began its time anew: 273 releases in an hour, the GPU billed, and no alert came."""

    async def accept(_market: VastMarket, _instance_id: str, *, is_gone: bool, is_gentle: bool) -> None:
        del is_gentle
        assert not is_gone

    async with rehearsed(tmp_path, workloads=(work(),)) as world:
        lease = await world.until_running()
        with monkeypatch.context() as forgetful:
            forgetful.setattr(VastMarket, "release", accept)
            await world.app.say(Order("release", lease.lease_id), "me")
            await world.cycle(minutes=3)
            first = next(each for each in world.contracts() if str(each.contract_id) == lease.instance_id)
            assert not first.holds_gpu
            await world.cycle(minutes=11)
            assert not await told(world)
            await world.cycle(minutes=16)
            (sentence,) = await told(world)
            assert f"the release of {lease.lease_id}" in sentence
            assert f"end instance {lease.instance_id} at the market itself" in sentence
            ordered = [each for each in await world.intents(IntentKind.RELEASE) if each.lease_id == lease.lease_id]
            assert 25 <= len(ordered) <= 40, "about one each minute"
        await world.until(lambda: lease.lease_id not in {each.lease_id for each in world.leases()}, minutes=5)


@pytest.mark.parametrize("routes", [("POST /v2/pods/",), ("POST /v2/pods/", "DELETE /v2/pods/")])
async def test_a_pod_whose_end_is_refused_on_one_route_is_ended_by_the_other(
    tmp_path: Path, routes: tuple[str, ...]
) -> None:
    pod = builders.workload(
        strategy="ondemand", requirements=builders.requirements(gpu_models=("RTX A5000",)), markets=("runpod",)
    )
    async with both(tmp_path, pod, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 1)
        (lease,) = world.leases()
        for route in routes:
            world.weather("runpod", "invalid_request", route=route)
        await world.app.say(Order("release", lease.lease_id), "me")
        await world.cycle(minutes=16)
        alerts = [event.reason for event in await world.events("alert.order_refused")]
        if len(routes) == 1:
            assert lease.instance_id not in {each.pod_id for each in world.live()}
            assert not alerts
        else:
            assert [each.pod_id for each in world.live()] == [lease.instance_id]
            (sentence,) = alerts
            assert f"end instance {lease.instance_id} at the market itself" in sentence
            world.still()
            await world.until(lambda: not world.live() or world.live()[0].pod_id != lease.instance_id, minutes=5)
