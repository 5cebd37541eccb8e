"""Silent hosts: their possible cost counts against budgets, and a smaller bill corrects nothing."""

import datetime as dt
from pathlib import Path

import pytest

from agent.act import bill_check
from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from agent.simulator.runpod.climate_table import Runpod
from tests.support import builders
from tests.support.both import Both, both
from tests.support.scene import STILL
from tests.support.world import rehearsed, work

KEPT = builders.workload(
    strategy="ondemand",
    requirements=builders.requirements(gpu_models=("RTX A5000",)),
    markets=("runpod",),
    checkpoint=Checkpoint(place=CheckpointPlace.DISK),
)
EVE = dt.datetime(2026, 7, 27, 20, 0, tzinfo=dt.UTC)
CENT = 0.01


async def never_short(world: Both, minutes: int) -> None:
    """Run cycles, and assert after each that at least the market's charges are counted."""
    for _minute in range(minutes):
        await world.cycle(minutes=1)
        assert await world.spend() >= world.pods.charged_total() - CENT


@pytest.mark.parametrize("is_billed", [False, True], ids=["free", "billed"])
async def test_a_pod_whose_host_falls_silent_is_never_counted_short(tmp_path: Path, is_billed: bool) -> None:
    there = STILL.having(Runpod(bills_silent_hosts=is_billed))
    async with both(tmp_path, KEPT, markets=("runpod",), start=EVE, climate=there) as world:
        await world.until(lambda: len(world.running()) == 1)
        await never_short(world, 30)
        (pod,) = world.live()
        world.weather("runpod", "host_offline", machine_id=pod.host.machine_id, seconds=1500)
        await never_short(world, 10)
        (lease,) = world.leases()
        assert (lease.state, lease.bills) == (LeaseState.OFFLINE, Bills.GPU_AND_DISK)
        await world.until(lambda: len(world.running()) == 1)
        await never_short(world, 15)
        assert world.running()[0].lease_id == lease.lease_id
        dark = 0.0 if is_billed else pod.rate * 1500 / 3600
        spend, charged = await world.spend(), world.pods.charged_total()
        assert spend == pytest.approx(charged + dark, abs=CENT)

        world.clock.advance((EVE + dt.timedelta(hours=7) - world.clock.now()).total_seconds())
        await world.cycle(minutes=1)
        before = await world.spend()
        [drift] = await bill_check.reconcile(world.app.ledger, world.app.markets, world.clock.now())
        # The bill is kept beside the estimate: a smaller bill is reported, and given back to no budget.
        assert await world.spend() == before
        assert drift.amount.dollars == pytest.approx(-dark, abs=2 * CENT)
        assert [event.amount for event in await world.events("bill.drifted")] == ([] if is_billed else [drift.amount])


async def test_a_spent_budget_pauses_a_pod_whose_host_is_silent(tmp_path: Path) -> None:
    there = STILL.having(Runpod(bills_silent_hosts=True))
    caps = Limits(money.per_hour(20), money.per_hour(50), money.usd("0.12"), money.usd(5000), 20)
    async with both(tmp_path, KEPT, markets=("runpod",), start=EVE, climate=there, limits=caps) as world:
        await world.until(lambda: len(world.running()) == 1)
        (pod,) = world.live()
        await world.cycle(minutes=5)
        world.weather("runpod", "host_offline", machine_id=pod.host.machine_id)
        await world.until(lambda: not pod.holds_gpu, minutes=45)
        assert [event.reason_code for event in await world.events("lease.paused")] == ["over_budget"]
        assert world.pods.charged_total() <= 0.12 + CENT


@pytest.mark.parametrize("status", ["unknown", "frozen"])
async def test_an_instance_that_nobody_hears_or_understands_is_never_counted_short(tmp_path: Path, status: str) -> None:
    async with rehearsed(tmp_path, workloads=(work(checkpoint=Checkpoint(place=CheckpointPlace.DISK)),)) as world:
        await world.until_running()
        await world.cycle(minutes=10)
        world.weather("unknown_status", status=status, seconds=1200)
        for _minute in range(25):
            await world.cycle(minutes=1)
            assert await world.spend() >= world.truth()["charged_total"] - CENT
        assert await world.spend() == pytest.approx(world.truth()["charged_total"], abs=CENT)
