"""The account runs dry: everything stops at once, the market is not blamed, and a deposit starts it again."""

from pathlib import Path

from agent.domain.market.interruption import Cause
from agent.domain.record.lease import LeaseState
from tests.support.world import rehearsed


async def test_out_of_credit_then_a_deposit(tmp_path: Path) -> None:
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        await world.cycle(minutes=10)
        loaded = world.contract().down_gb
        orders = len(world.orders)
        empty = world.weather("no_credit")
        await world.cycle(minutes=30)

        lease = world.lease()
        assert (lease.state, lease.interrupted_by) == (LeaseState.PAUSED, Cause.OUT_OF_CREDIT)
        assert len(world.orders) == orders, "bid or moved against an empty account"
        done = await world.cycle()
        assert [decision.reason.limit for decision in done.plan.decisions] == ["no_credit"]

        world.simulator.weather.clear(empty)
        await world.until_running(minutes=15)
        assert world.lease().lease_id == held.lease_id
        assert world.contract().down_gb == loaded
        assert [order.route for order in world.orders[orders:]] == ["instances"]
        assert (await world.events("lease.interrupted"))[-1].rule == "credit"


async def test_refused_for_lack_of_credit_rents_nothing(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, credit=0.0) as world:
        await world.cycle(minutes=30)
        assert not world.orders
        assert not world.contracts()
