"""One workload over both markets: it goes where it is cheaper, and the end of RunPod's products loses nothing."""

from pathlib import Path

import pytest

from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import LeaseState
from agent.simulator.runpod.sales_modes import Mode
from tests.support import builders
from tests.support.both import OF_THE_PAST, both
from tests.support.scene import POLL


async def test_each_workload_runs_on_the_market_it_may_use_and_an_open_one_on_the_better(tmp_path: Path) -> None:
    names = {"here": ("vast",), "there": ("runpod",), "anywhere": ()}
    works = [builders.workload(name, strategy="ondemand", markets=markets) for name, markets in names.items()]
    async with both(tmp_path, *works, seed=13, poll=POLL) as world:
        await world.until(lambda: len(world.running()) == 3)
        held = {lease.slot.workload: lease for lease in world.leases()}
        assert (held["here"].market, held["there"].market) == ("vast", "runpod")
        # The other two show what each market offers: the third is where a DLPerf costs less.
        per_dlperf = {lease.market: lease.gpu_rate.dollars / lease.dlperf for lease in (held["here"], held["there"])}
        assert held["anywhere"].market == min(per_dlperf, key=lambda name: per_dlperf[name])
        charged = world.pods.charged_total() + world.hosts.truth()["charged_total"]
        assert await world.spend() == pytest.approx(charged, abs=max(0.02, 0.01 * charged))


@pytest.mark.parametrize("mode", list(Mode)[1:])
async def test_flipping_what_runpod_sells_loses_no_workload(tmp_path: Path, mode: Mode) -> None:
    bidding = builders.workload("bidding", markets=("runpod",))
    asking = builders.workload("asking", strategy="ondemand", markets=("runpod",))
    async with both(tmp_path, bidding, asking, markets=("runpod",), climate=OF_THE_PAST) as world:
        await world.until(lambda: len(world.running()) == 2)
        tenures = {lease.slot.workload: lease.tenure for lease in world.leases()}
        assert tenures == {"bidding": Tenure.INTERRUPTIBLE, "asking": Tenure.ON_DEMAND}
        before = {lease.instance_id for lease in world.leases()}
        world.pods.set_mode(mode)
        await world.cycle(minutes=60)
        assert {lease.instance_id for lease in world.running()} == before
        # Long enough that a seldom probe happens again.
        world.clock.advance(7 * 3600.0)
        await world.cycle(minutes=10)
        assert {lease.instance_id for lease in world.running()} == before
        told = [event.reason_code for event in await world.events("alert.not_sold")]
        assert told == ["not_sold"]


async def test_an_outbid_pod_is_asked_for_and_the_workload_goes_on_elsewhere(tmp_path: Path) -> None:
    bidding = builders.workload(markets=("runpod",))
    async with both(tmp_path, bidding, markets=("runpod",), climate=OF_THE_PAST) as world:
        await world.until(lambda: len(world.running()) == 1)
        (lease,), (pod,) = world.leases(), world.live()
        assert (lease.tenure, pod.is_bid) == (Tenure.INTERRUPTIBLE, True)
        assert lease.gpu_rate.dollars == pytest.approx(pod.rate)
        rival = world.pods.add_rival(pod.host.machine_id, pod.host.gpu_count, None, on_demand=True)
        await world.until(lambda: any(one.state is not LeaseState.RUNNING for one in world.leases()), minutes=10)
        lost = (await world.events("lease.interrupted"))[-1]
        assert (lost.cause, lost.rule) == (Cause.OUTBID, "market_record")
        await world.until(lambda: pod.ended is not None, minutes=60)
        world.pods.remove_rival(rival)
        await world.until(lambda: len(world.running()) == 1)
