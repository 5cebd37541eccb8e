"""Rule 15: stopping the daemon never releases, and says what goes on billing; a live market needs `spend = true`."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain import money
from agent.domain.record.lease import LeaseState
from tests.support.losses import losses, seeds
from tests.support.witness import intent_id
from tests.support.world import FLEET, Rehearsed, play, work


@given(seed=seeds, cycles=st.integers(0, 40), loss=st.none() | losses, slots=st.integers(1, 3))
def test_stopping_releases_nothing(seed: int, cycles: int, loss: dict[str, Any] | None, slots: int) -> None:
    """At whatever moment: nothing is ordered while it stops or after, and the printed rate is exact."""

    async def story(world: Rehearsed) -> None:
        for _ in range(cycles):
            await world.cycle()
        if loss is not None:
            world.weather(**loss)
            await world.cycle()
        orders, live = len(world.orders), world.live()
        leases, rate = world.app.billing()
        assert rate == money.total_rate(lease.billing_rate for lease in leases)
        known = {lease.instance_id for lease in leases} | {each.intent_id for each in world.open_intents()}
        for contract in live:
            assert known & {str(contract.contract_id), intent_id(contract)}, "it bills and is not told of"
        await world.close()
        world.clock.advance(600)
        world.market.advance_to(world.clock.time())
        assert len(world.orders) == orders
        assert world.live() == live

    play(story, seed=seed, workloads=(work(slots=slots),))


@given(seed=seeds, minutes=st.sampled_from([1, 60]), is_found=st.booleans())
@example(seed=8842, minutes=60, is_found=True)  # a found lease that is outbid and that no strategy needs
@example(seed=2086, minutes=60, is_found=True)  # a found lease that costs more than its workload may
def test_without_spend_nothing_is_written(seed: int, minutes: float, *, is_found: bool) -> None:
    async def story(world: Rehearsed) -> None:
        if is_found:
            world.is_checked = False
            await world.close()
            world.foreign(f"gpubid:{FLEET}:train:0:feedfacefeedface")
            world.clock.advance(60)
            await world.open()
        done = await world.cycle()
        await world.cycle(minutes)
        for contract in world.live():
            world.rival(contract.slice.machine_id)
        await world.cycle(minutes)
        assert not world.orders
        calls = [(call["method"], call["path"]) for call in world.truth()["calls"]]
        assert {method for method, path in calls if "/bundles/" not in path} == {"GET"}
        assert not await world.intents()
        if not is_found:
            assert {decision.reason.limit for decision in done.plan.decisions} == {"no_spend"}

    play(story, seed=seed, may_spend=False)


@given(seed=seeds)
def test_spend_taken_away_pays_nothing_more(seed: int) -> None:
    """A daemon restarted without `spend` keeps running leases, and neither raises, resumes nor rents."""

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        world.forbid_spending()
        await world.restart()
        orders = len(world.orders)
        await world.cycle(minutes=10)
        world.rival(int(held.host_id), bid=held.gpu_rate.dollars * 1.2)
        await world.cycle(minutes=20)
        assert not [order for order in world.orders[orders:] if order.kind.is_paying]
        # Where the rival gives way, the market starts it again by itself.
        assert world.lease().lease_id == held.lease_id
        assert world.lease().state is (LeaseState.RUNNING if world.contract().holds_gpu else LeaseState.PAUSED)

    play(story, seed=seed)
