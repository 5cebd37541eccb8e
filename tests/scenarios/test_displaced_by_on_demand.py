"""An on-demand renter takes the GPUs: no bid wins that back, so none is raised."""

from pathlib import Path

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from tests.support.world import rehearsed


async def test_displaced_then_moves_and_never_bids_against_on_demand(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        old = world.contract()
        await world.cycle(minutes=30)
        world.rival(old.slice.machine_id)

        await world.until(lambda: old.ended is not None, minutes=60)
        await world.until(lambda: len(world.leases()) == 1)
        lost = (await world.events("lease.interrupted"))[-1]
        assert lost.cause is Cause.DISPLACED
        assert lost.rule == "inbox"
        assert not world.calls("PUT", "/instances/bid_price"), "a bid was raised against an on-demand renter"
        assert world.lease().host_id != held.host_id


async def test_displaced_for_a_moment_resumes_by_itself(tmp_path: Path) -> None:
    """With nowhere to go the slot waits paused, and a GPU that the market gives back is taken without an order."""
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        contract = world.contract()
        for machine_id in list(world.market.hosts):
            if machine_id != contract.slice.machine_id:
                world.market.set_host_gone(machine_id)
        loaded = contract.down_gb
        rival = world.rival(contract.slice.machine_id)
        await world.cycle(minutes=5)
        assert world.lease().state is LeaseState.PAUSED

        world.market.remove_rival(rival)
        await world.until_running(minutes=5)
        assert world.lease().lease_id == held.lease_id
        assert contract.down_gb == loaded
        assert (await world.events("lease.resumed"))[-1].lease_id == held.lease_id
        assert [order.route for order in world.orders] == ["asks"], "the market gave it back; nothing had to be said"
