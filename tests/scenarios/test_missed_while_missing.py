"""What stops while its market lists nothing of it is a loss with its cause, whether it runs again or not."""

from pathlib import Path

import pytest

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from tests.support import engines
from tests.support.world import POLL, rehearsed, work


@pytest.mark.parametrize("is_back", [True, False], ids=["runs again", "stays paused"])
async def test_an_outbid_of_a_missing_lease_is_a_loss(tmp_path: Path, *, is_back: bool) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=2),), poll=POLL) as world:
        await world.until_running()
        await world.cycle(minutes=40)
        contract = min(world.live(), key=lambda each: each.contract_id)
        lease_id = f"vast-{contract.contract_id}"
        lie = world.weather("wrong_account", route="/instances", seconds=3000)
        await world.cycle(minutes=5)
        assert {lease.state for lease in world.leases()} == {LeaseState.MISSING}
        lost_at = world.clock.time()
        rival = world.rival(contract.slice.machine_id, bid=(contract.bid or 0.0) * 1.5)
        await world.cycle(minutes=10)
        if is_back:
            world.market.remove_rival(rival)
            await world.cycle(minutes=5)
        world.simulator.weather.clear(lie)
        await world.cycle(minutes=1)

        lost = [event for event in await world.events("lease.interrupted") if event.lease_id == lease_id]
        assert [(event.cause, event.rule) for event in lost] == [(Cause.OUTBID, "inbox")]
        if is_back:
            back = [event for event in await world.events("lease.resumed") if event.lease_id == lease_id]
            assert abs(lost[0].at.timestamp() - lost_at) < 30
            assert len(back) == 1
            assert 590 < (back[0].at - lost[0].at).total_seconds() < 660
        held = next(lease for lease in [*world.leases(), *await world.past_leases()] if lease.lease_id == lease_id)
        hosts = world.app.ledger.recollection(world.clock.now()).hosts_on("vast")
        assert hosts[held.host_id].interruptions == pytest.approx(1.0, abs=0.01)
        assert engines.place(world.config.ledger).verify().is_sound
        assert -0.01 <= await world.spend() - world.market.charged_total() <= 0.02
