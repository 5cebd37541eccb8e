"""Rule 8: a stop that nothing explains may be a person's hand: a batch is held, a service moves once a cool-off."""

from hypothesis import example, given
from hypothesis import strategies as st

from agent.decide.reconcile.workload_end import COOL_OFF
from agent.domain.record.intent import IntentKind
from agent.domain.work.workload import WorkloadKind
from tests.support.losses import seeds
from tests.support.world import HOURS_POLL, Rehearsed, play, work

PAYS = {IntentKind.RENT, IntentKind.RESUME}


def befall(world: Rehearsed, number: int, fate: str) -> None:
    """Stop or start an instance as a person does in the console."""
    world.market.advance_to(world.clock.time())
    if fate == "stop":
        world.market.stop(number)
    else:
        world.market.destroy(number)


async def stopped_at_every_start(world: Rehearsed, hours: float) -> None:
    """Stop each instance at the first look at it."""
    began = world.clock.time()
    while world.clock.time() - began < hours * 3600:
        await world.cycle()
        for contract in world.live():
            if contract.holds_gpu:
                befall(world, contract.contract_id, "stop")


@given(seed=seeds, fate=st.sampled_from(["stop", "destroy"]), ran=st.sampled_from([4, 30, 90]))
def test_a_batch_is_held_with_a_notice(seed: int, fate: str, ran: float) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(ran)
        orders = len(world.orders)
        befall(world, int(held.instance_id), fate)
        await world.cycle(minutes=90)
        assert not [order for order in world.orders[orders:] if order.kind.is_paying]
        assert await world.events("workload.held")
        assert not [contract for contract in world.live() if contract.holds_gpu]

    play(story, seed=seed, workloads=(work(kind=WorkloadKind.BATCH),))


@given(seed=seeds, fate=st.sampled_from(["stop", "destroy"]), times=st.integers(2, 4))
@example(seed=184, fate="stop", times=3)  # it is stopped while it loads
def test_a_service_goes_on_once_a_cool_off(seed: int, fate: str, times: int) -> None:
    """Somebody stops it again as soon as it runs: it is not paid for in a loop."""

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        began = world.clock.time()
        orders = len(world.orders)
        for _ in range(times):
            for contract in world.live():
                if contract.holds_gpu:
                    befall(world, contract.contract_id, fate)
            await world.cycle(minutes=6)
        paid = [order.at for order in world.orders[orders:] if order.kind in PAYS]
        allowed = 1 + (world.clock.time() - began) // COOL_OFF.total_seconds()
        assert len(paid) <= allowed, f"{len(paid)} paid in {world.clock.time() - began:.0f} s"
        await world.until_running(minutes=120)

    play(story, seed=seed, workloads=(work(kind=WorkloadKind.SERVICE),), poll=HOURS_POLL)


@given(seed=seeds)
@example(seed=517)  # no other offer is worth more than its disk
def test_a_batch_that_is_stopped_at_every_start_is_held_by_its_limit(seed: int) -> None:
    """It has not run, so no stop is its end; but each further host would load its image again."""

    async def story(world: Rehearsed) -> None:
        await stopped_at_every_start(world, hours=3)
        rented = [order for order in world.orders if order.kind is IntentKind.RENT]
        assert len(rented) <= 3, f"{len(rented)} rents in three hours"
        assert not [each for each in world.live() if each.holds_gpu]
        if await world.events("workload.held"):
            assert len(rented) == 3, f"held after {len(rented)} rents"
        else:
            # The market shows the same states for a start that was outbid: it waits while that is cheaper.
            assert [each.reason.code for each in world.plans[-1].decisions] == ["wait_paused"]

    play(story, seed=seed, workloads=(work(kind=WorkloadKind.BATCH, max_failed_starts=3),))


def test_a_batch_whose_first_start_is_waited_for_is_held_too() -> None:
    """Waiting for it was as cheap after a day as after a minute: its disk was paid for without end."""

    async def story(world: Rehearsed) -> None:
        await stopped_at_every_start(world, hours=3)
        assert await world.events("workload.held")

    play(story, seed=9323, workloads=(work(kind=WorkloadKind.BATCH, max_failed_starts=3),), poll=HOURS_POLL)
