"""A host vanishes with its instance: it is gone if the market denies it and listings two minutes apart lack it."""

from pathlib import Path

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from tests.support.world import POLL, rehearsed, work


async def test_host_gone_is_proven_then_replaced(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, poll=POLL) as world:
        held = await world.until_running()
        await world.cycle(minutes=20)
        gone_at = world.clock.time()
        world.weather("host_gone", machine_id=world.contract().slice.machine_id)

        await world.cycle()
        assert world.lease().state is LeaseState.MISSING
        await world.cycle(minutes=1.5)
        assert world.lease().state is LeaseState.MISSING, "believed gone before listings two minutes apart lacked it"
        assert len(world.contracts()) == 1, "replaced before it was proven gone"

        await world.until_running(minutes=30)
        assert world.lease().host_id != held.host_id
        lost = (await world.events("lease.interrupted"))[-1]
        assert (lost.lease_id, lost.cause, lost.rule) == (held.lease_id, Cause.HOST_GONE, "no_such_instance")
        rented = [order for order in world.orders if order.at > gone_at]
        assert [order.route for order in rented] == ["asks"]
        assert rented[0].at - gone_at >= 120
        asked = world.calls("GET", f"/instances/{held.instance_id}", since=gone_at)
        assert asked, "the market was never asked for it by name"


async def test_several_vanish_at_once_is_the_markets_fault(tmp_path: Path) -> None:
    """Two of three leases missing from listing and look-up alike: held, counted, not replaced."""
    async with rehearsed(tmp_path, workloads=(work(slots=3),)) as world:
        await world.until_running()
        await world.cycle(minutes=5)
        weather = world.weather("wrong_account", route="/instances", seconds=1500)
        await world.cycle(minutes=20)

        states = [lease.state for lease in world.leases()]
        assert states == [LeaseState.MISSING] * 3
        assert len(world.contracts()) == 3, "refilled what only a lying market lacks"
        assert await world.events("alert.market_fault")

        world.simulator.weather.clear(weather)
        await world.until_running(minutes=2)
        assert len(world.live()) == 3
        assert len(world.orders) == 3


async def test_a_slot_that_a_fault_of_the_market_kept_empty_is_filled_as_soon_as_that_is_over(tmp_path: Path) -> None:
    """Two hosts end at once while another slot is empty: its searches become rare, and none must be waited for."""
    async with rehearsed(tmp_path, workloads=(work(slots=2), work(name="later"))) as world:
        await world.app.say(Order("pause", "later"), "ops")
        await world.until(lambda: sum(lease.state is LeaseState.RUNNING for lease in world.leases()) == 2)
        for contract in world.contracts():
            world.market.set_host_gone(contract.slice.machine_id)
        await world.cycle()
        await world.app.say(Order("resume", "later"), "ops")
        # The search for the others would serve it as well.
        await world.app.say(Order("pause", "train"), "ops")
        alerts = world.app.seen.alerts if world.app.seen else ()
        assert [alert.code for alert in alerts] == ["market_fault"]

        await world.until(lambda: not any(lease.state is LeaseState.MISSING for lease in world.leases()), minutes=70)
        assert not [lease for lease in world.leases() if lease.slot.workload == "later"]
        await world.cycle(minutes=1)
        assert [lease for lease in world.leases() if lease.slot.workload == "later"]


async def test_gone_and_listed_again_is_taken_back(tmp_path: Path) -> None:
    """The market denied it for long enough and was wrong: it is found by its label, once, and counted again."""
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        contract = world.contract()
        for machine_id in list(world.market.hosts):
            if machine_id != contract.slice.machine_id:
                world.market.set_host_gone(machine_id)
        world.weather("wrong_account", route="/instances", seconds=300)
        await world.until(lambda: not world.leases(), minutes=6)
        world.still()
        await world.cycle(minutes=2)
        lease = world.lease()
        assert (lease.instance_id, lease.slot) == (held.instance_id, held.slot)
        assert contract.ended is None
        assert len(world.contracts()) == 1
