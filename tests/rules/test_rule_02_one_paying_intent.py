"""Rule 2: one open paying intent per slot; release and pause may be sent again until it is so, and go first."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent.decide import plan
from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Pause, Release
from agent.domain.work.order import Order
from tests.support import builders, levers, second_price
from tests.support.losses import losses, seeds
from tests.support.world import Rehearsed, play, work

MANY_HOSTS = 150
"""Four slots find a host, and others after every loss."""

ENDING = {IntentKind.RELEASE, IntentKind.PAUSE}


@given(seed=seeds, loss=losses, restarts=st.lists(st.sampled_from([0, 60, 700]), max_size=3))
def test_a_slot_has_one_open_paying_intent(seed: int, loss: dict[str, Any], restarts: list[float]) -> None:
    """The world refuses two; the ledger's own index would too. A restart keeps the doubt, and the slot blocked."""

    async def story(world: Rehearsed) -> None:
        world.weather(**(loss | {"seconds": 1000}))
        await world.cycle(minutes=3)
        for after in restarts:
            await world.restart(after)
            await world.cycle(minutes=3)
            doubted = {intent.slot for intent in world.open_intents() if intent.kind.is_paying}
            done = await world.cycle()
            paid = [intent.slot for intent in done.done if intent.kind.is_paying]
            assert not doubted.intersection(paid), "paid for a slot in doubt"

    play(story, seed=seed, workloads=(work(slots=2),))


@given(seed=seeds, loss=losses, minutes=st.sampled_from([1, 10, 40]))
@example(seed=1506, loss={"fault": "server_error_before"}, minutes=10)  # what it moves to loads for too long
@example(seed=545, loss={"fault": "throttle_json"}, minutes=40)  # it runs on demand
def test_a_release_is_sent_again_until_it_is_gone(seed: int, loss: dict[str, Any], minutes: float) -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=20)
        world.rival(int(held.host_id))
        weather = world.weather(**(loss | {"route": "DELETE /instances", "seconds": 36_000}))
        if held.tenure is Tenure.ON_DEMAND:
            # No rival takes its host, so a person lets it go.
            await world.app.say(Order("release", held.lease_id), "a test")
        await world.until(lambda: any(lease.state is LeaseState.RELEASING for lease in world.leases()), minutes=90)
        # Where the new lease of the move loads for too long, that is released, and the old one stays.
        [leaving] = [lease for lease in world.leases() if lease.state is LeaseState.RELEASING]
        await world.cycle(minutes)
        world.simulator.weather.clear(weather)
        await world.cycle(minutes=2)

        assert world.market.contracts[int(leaving.instance_id)].ended is not None
        assert leaving.lease_id not in {lease.lease_id for lease in world.leases()}
        # Where it was let go instead of moved, the next host may still be loading.
        await world.until_running()
        deletes = [order for order in world.orders if order.kind is IntentKind.RELEASE]
        assert len({order.intent_id for order in deletes}) == len(deletes), "one intent was sent twice"

    play(story, seed=seed)


@given(seed=seeds, slots=st.integers(2, 4), kinds=st.lists(st.sampled_from(["rival", "exit", "gone"]), min_size=1))
def test_what_stops_paying_goes_first(seed: int, slots: int, kinds: list[str]) -> None:
    """Within a cycle every release and pause has arrived before anything that pays leaves."""

    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=10)
        for contract, kind in zip(world.live(), kinds, strict=False):
            if kind == "rival":
                world.rival(contract.slice.machine_id)
            elif kind == "exit":
                levers.exit_container(world.market, contract.contract_id)
            else:
                world.market.set_host_gone(contract.slice.machine_id)
        until = world.clock.monotonic() + 3600
        while world.clock.monotonic() < until:
            known = len(world.orders)
            await world.cycle()
            ranks = [order.kind not in ENDING for order in world.orders[known:]]
            assert ranks == sorted(ranks)

    play(story, seed=seed, hosts=MANY_HOSTS, workloads=(work(slots=slots),))


@settings(max_examples=40)
@given(fleet=second_price.fleets())
def test_a_slot_has_at_most_one_bid_that_waits_for_an_auction(fleet: Fleet) -> None:
    """After the endings of a plan no slot has a second bid, nor one beside its running lease."""
    made = plan.plan(fleet, second_price.TUNED, builders.NO_LIMITS).decisions
    ended = {each.lease.lease_id for each in made if isinstance(each, Pause | Release)}
    for place in fleet.workloads[0].places:
        left = [lease for lease in fleet.leases_of(place) if lease.lease_id not in ended]
        waits = [lease for lease in left if lease.is_open_bid]
        newer = [lease for lease in left if waits and lease.opened_at > waits[0].opened_at]
        assert len(waits) <= 1, "two bids may win at one auction"
        assert not any(lease.is_live for lease in newer), "a bid waits beside the lease that replaced it"
