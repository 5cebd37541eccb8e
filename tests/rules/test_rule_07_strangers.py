"""Rule 7: an unknown instance of our fleet is adopted where its slot is empty, else held and counted, never guessed at.

And no rent before one complete listing was read; and an instance of a daemon that we did not start stops our writing.
"""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentKind
from agent.ledger.file import sidecar
from agent.ledger.ledger_errors import Code, LedgerError
from tests.support.losses import seeds
from tests.support.world import FLEET, POLL, Rehearsed, play, work


@given(
    seed=seeds,
    name=st.sampled_from(["train", "other"]),
    slot=st.integers(0, 3),
    is_filled=st.booleans(),
    is_underbid=st.booleans(),
)
@example(seed=3, name="train", slot=0, is_filled=False, is_underbid=False)
@example(seed=3, name="train", slot=0, is_filled=True, is_underbid=False)
@example(seed=225, name="train", slot=0, is_filled=False, is_underbid=False)  # its first offer costs $1.71/h
def test_a_stranger_from_before_our_start(
    seed: int, name: str, slot: int, *, is_filled: bool, is_underbid: bool
) -> None:
    async def story(world: Rehearsed) -> None:
        if is_filled:
            await world.until_running()
        await world.close()
        # One that costs more than its workload may is adopted, and released at once.
        stranger = world.foreign(f"gpubid:{FLEET}:{name}:{slot}:feedfacefeedface", most=0.3)
        if is_underbid:
            world.market.stop(stranger.contract_id)
        world.clock.advance(30)
        orders = len(world.orders)
        await world.open()
        await world.cycle(minutes=1)

        is_adopted = name == "train" and slot in {0, 1} and not is_filled
        found = await world.events("orphan.seen")
        assert [event.reason_code for event in found] == ["adopt" if is_adopted else "hold"]
        lease = next(each for each in world.leases() if each.instance_id == str(stranger.contract_id))
        assert lease.is_held is not is_adopted
        assert lease.slot.index == slot
        rented = [order for order in world.orders[orders:] if order.kind is IntentKind.RENT]
        # One that is lost may be left for a better host: first it is made sure that it cannot start.
        left = [order for order in world.orders[orders:] if order.number == stranger.contract_id]
        is_lost = is_adopted and bool(await world.events("lease.start_lost", "lease.interrupted"))
        assert [order.kind for order in left] in ([], [IntentKind.PAUSE] if is_lost else [])
        expected = 0 if is_filled else 1 if is_adopted else 2
        assert len(rented) == expected + len(left), "each empty slot is filled once"
        await world.cycle(minutes=20)
        if not is_adopted:
            assert not [order for order in world.orders if order.number == stranger.contract_id]
            assert lease.lease_id in {each.lease_id for each in world.leases()}, "held is counted until a person says"

    play(story, seed=seed, workloads=(work(slots=2),), poll=POLL)


@given(seed=seeds, minutes=st.sampled_from([1, 12]), fault=st.sampled_from(["server_error_before", "malformed"]))
def test_no_rent_before_one_complete_listing(seed: int, minutes: float, fault: str) -> None:
    async def story(world: Rehearsed) -> None:
        weather = world.weather(fault, route="GET /instances")
        await world.cycle(minutes)
        assert not world.orders
        world.simulator.weather.clear(weather)
        await world.cycle()
        assert [order.kind for order in world.orders] == [IntentKind.RENT], "it goes on waiting when the dark is over"
        listings = [call for call in world.calls("GET", "/instances") if call[3] == 200]
        assert listings[-1][0] <= world.orders[0].at

    play(story, seed=seed)


@given(seed=seeds, slot=st.integers(0, 5), minutes=st.sampled_from([2, 20]))
def test_a_newer_label_that_we_did_not_write_stops_writing(seed: int, slot: int, minutes: float) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.is_checked = False  # the other daemon's instance is none of our ledger's
        world.foreign(f"gpubid:{FLEET}:train:{slot}:feedfacefeedface")
        await world.cycle(minutes=1)
        orders, intents = len(world.orders), len(await world.intents())
        for contract in world.live():
            world.rival(contract.slice.machine_id)
        await world.cycle(minutes)
        assert len(world.orders) == orders
        assert len(await world.intents()) == intents
        assert [event.reason_code for event in await world.events("orphan.seen")] == ["second_daemon"]

    play(story, seed=seed)


@given(seed=seeds)
def test_one_process_writes_a_ledger(seed: int) -> None:
    async def story(world: Rehearsed) -> None:
        first = world.app
        with pytest.raises(LedgerError) as refused:
            await world.open()
        assert refused.value.code is Code.LOCKED
        world.app = first
        assert sidecar.read_fleet_id(world.config.ledger) == FLEET

    play(story, seed=seed)
