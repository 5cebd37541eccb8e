"""Rule 10: a move first cancels what could start the old lease by itself, and reads it back; else both are reserved."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.limits import limits
from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders, second_price
from tests.support.losses import losses, seeds
from tests.support.world import Rehearsed, play, work

AFTER_MINUTES = 120
"""For so long after the rival has gone, what was queued may still start."""


@given(
    seed=seeds,
    times=st.sampled_from([1.5, 3.0, None]),
    away=st.sampled_from([2, 12, 40]),
    loss=st.none() | losses,
)
def test_an_old_lease_never_runs_beside_the_new_one_unreserved(
    seed: int, times: float | None, away: float, loss: dict[str, object] | None
) -> None:
    """The rival goes away at any moment of the move: a queued start of the old lease would then be served."""

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=15)
        contract = world.contract()
        bid = None if times is None or contract.bid is None else contract.bid * times
        rival = world.rival(int(held.host_id), bid=bid)
        if loss is not None:
            world.weather(**loss)  # type: ignore[arg-type]
        await world.cycle(away)
        world.market.advance_to(world.clock.time())
        world.market.remove_rival(rival)
        until = world.clock.monotonic() + AFTER_MINUTES * 60
        while world.clock.monotonic() < until:
            await world.cycle()
            running = [each for each in world.live() if each.holds_gpu]
            if len(running) > 1:
                committed = limits.committed_by_fleet((await world.cycle()).fleet).rate
                costs = sum(each.bid if each.bid is not None else each.locked_ask for each in running)
                assert committed.dollars >= costs * 0.99, "two run and only one is reserved"
        world.still()
        await world.until_running(minutes=240)
        await world.cycle(minutes=30)
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING]

    play(story, seed=seed)


@given(seed=seeds, loss=st.none() | losses)
def test_the_old_lease_cannot_start_by_itself_when_the_rent_arrives(seed: int, loss: dict[str, object] | None) -> None:
    free = work(checkpoint=Checkpoint(place=CheckpointPlace.REMOTE))

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=15)
        old = world.contract()
        world.rival(int(held.host_id))
        if loss is not None:
            world.weather(**loss)  # type: ignore[arg-type]
        while world.clock.time() < old.created + 6 * 3600:
            rents = sum(order.kind is IntentKind.RENT for order in world.orders)
            await world.cycle()
            if sum(order.kind is IntentKind.RENT for order in world.orders) > rents and old.ended is None:
                lease = next(each for each in world.leases() if each.instance_id == str(old.contract_id))
                is_parked = lease.paused_by_us or lease.state is LeaseState.OFFLINE
                assert is_parked or old.holds_gpu, "rented while the old one may start by itself"
                return

    play(story, seed=seed, workloads=(free,))


@settings(max_examples=40)
@given(fleet=second_price.fleets())
def test_a_bid_that_waits_for_an_auction_is_parked_before_a_move_rents(fleet: Fleet) -> None:
    for made in plan.plan(fleet, second_price.TUNED, builders.NO_LIMITS).decisions:
        if isinstance(made, Rent):
            assert not any(lease.is_open_bid for lease in fleet.leases_of(made.slot)), "both may win at one auction"
