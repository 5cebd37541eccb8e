"""Outbid by a rival whose price is worth paying: the bid is raised, the same contract runs again, its image there."""

from pathlib import Path

from agent.domain import money
from agent.domain.market.interruption import Cause
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from tests.support.scene import heavy
from tests.support.world import rehearsed


async def test_outbid_then_raise_in_place(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(heavy(),)) as world:
        held = await world.until_running()
        contract = world.contract()
        await world.cycle(minutes=30)
        loaded = contract.down_gb
        world.rival(contract.slice.machine_id, bid=held.gpu_rate.dollars * 1.2)

        done = await world.cycle()

        assert [intent.kind for intent in done.done] == [IntentKind.REBID]
        await world.until_running(minutes=5)
        lease = world.lease()
        assert lease.instance_id == held.instance_id
        assert lease.gpu_rate > held.gpu_rate
        assert world.contract().contract_id == contract.contract_id
        assert contract.down_gb == loaded, "the image was pulled again"
        lost, resumed = (await world.events("lease.interrupted", "lease.resumed"))[-2:]
        assert (lost.kind, lost.cause, resumed.kind) == ("lease.interrupted", Cause.OUTBID, "lease.resumed")
        assert lost.floor is not None
        assert abs(lost.floor.dollars - held.gpu_rate.dollars * 1.2) < 0.011
        assert lost.evidence.startswith("the market's inbox says outbid")
        assert len(world.calls("PUT", "/asks")) == 1
        assert lease.state is LeaseState.RUNNING
        assert money.per_hour(contract.bid or 0.0) == lease.gpu_rate
