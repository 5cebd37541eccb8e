"""A workload on RunPod, on demand: rented, run, counted as the market charges it, given up when its host fills up."""

from pathlib import Path

import pytest

from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Pause, Reason
from tests.support import builders
from tests.support.both import both

WORK = builders.workload(
    strategy="ondemand", requirements=builders.requirements(gpu_models=("RTX A5000",)), markets=("runpod",)
)


async def test_a_workload_runs_on_runpod_and_costs_what_the_market_charges(tmp_path: Path) -> None:
    async with both(tmp_path, WORK, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 1)
        (lease,), (pod,) = world.leases(), world.live()
        assert (lease.market, lease.instance_id, lease.tenure) == ("runpod", pod.pod_id, Tenure.ON_DEMAND)
        assert lease.gpu_rate == builders.per_hour("0.26")
        await world.cycle(minutes=180)
        assert [pod.pod_id for pod in world.live()] == [lease.instance_id]
        charged = world.pods.charged_total()
        assert charged > 0.7
        # One poll at the rate for each of the two turns so far, or half a per cent.
        assert await world.spend() == pytest.approx(charged, abs=max(0.01, 0.005 * charged))
        bill = await world.app.markets["runpod"].charges(world.clock.now(), world.clock.now())
        assert sum(line.amount.dollars for line in bill) == pytest.approx(charged, abs=0.001)


async def test_what_cannot_start_where_it_stands_is_given_up_for_another(
    tmp_path: Path,
) -> None:
    async with both(tmp_path, WORK, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 1)
        (lease,), (pod,) = world.leases(), world.live()
        await world.app.order([Pause(lease, Reason("test", "a person's word"))], "tester")
        assert [pod.status for pod in world.live()] == ["EXITED"]
        rival = world.pods.add_rival(pod.host.machine_id, pod.host.gpu_count, None, on_demand=True)
        await world.until(lambda: pod.ended is not None, minutes=30)
        world.pods.remove_rival(rival)
        await world.until(lambda: len(world.running()) == 1)
        assert world.leases()[0].instance_id != lease.instance_id
        released = (await world.events("lease.released_by_us"))[-1]
        assert (released.lease_id, released.reason_code) == (lease.lease_id, "host_full")


async def test_two_slots_share_a_pool(tmp_path: Path) -> None:
    work = builders.workload(
        strategy="ondemand", slots=2, requirements=builders.requirements(gpu_models=("RTX A5000",)), markets=("runpod",)
    )
    async with both(tmp_path, work, markets=("runpod",)) as world:
        await world.until(lambda: len(world.running()) == 2)
        await world.cycle(minutes=30)
        assert len(world.live()) == 2
        assert all(lease.state is LeaseState.RUNNING for lease in world.leases())
