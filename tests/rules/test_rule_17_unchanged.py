"""Rule 17: a cycle over an unchanged world has no side effect."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain import money
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support.losses import seeds
from tests.support.world import HOURS_POLL, Rehearsed, play, work


@given(
    seed=seeds,
    slots=st.integers(1, 3),
    befalls=st.sampled_from(["nothing", "paused", "broke", "offline", "doubt", "foreign", "unaffordable"]),
    cycles=st.integers(1, 12),
)
def test_a_cycle_over_an_unchanged_world_has_no_side_effect(seed: int, slots: int, befalls: str, cycles: int) -> None:
    """Whatever happened before: once nothing moves, nothing is ordered, recorded or reported, cycle after cycle.

    The disk is never left, so a lost lease waits on its host and no choice remains.
    """
    asked_for = work(slots=slots, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    if befalls == "unaffordable":
        asked_for = replace(asked_for, max_price=money.per_hour("0.0001"))

    async def story(world: Rehearsed) -> None:
        await _befall(world, befalls)
        await world.cycle(minutes=14)
        before = await _written(world)
        for _ in range(cycles):
            await world.cycle()
        assert await _written(world) == before

    play(story, seed=seed, workloads=(asked_for,), poll=HOURS_POLL)


@pytest.mark.parametrize("is_paused_first", [True, False])
def test_what_a_person_paused_gets_no_more_orders_while_its_host_is_silent(*, is_paused_first: bool) -> None:
    """A pause was ordered again each second, and written down twice, for as long as the host was silent."""

    async def paused(world: Rehearsed) -> None:
        await world.app.say(Order("pause", "train"), "a test")
        await world.cycle(minutes=1)

    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=5)
        if is_paused_first:
            await paused(world)
        silent = world.weather("host_offline", machine_id=int(held.host_id))
        await world.until(lambda: world.lease().state is LeaseState.OFFLINE, minutes=5)
        if not is_paused_first:
            await paused(world)
        await world.cycle(minutes=2)
        before = await _written(world)
        await world.cycle(minutes=3)
        assert await _written(world) == before
        world.simulator.weather.clear(silent)
        await world.cycle(minutes=3)
        assert not world.contract().holds_gpu
        assert world.lease().state is LeaseState.PAUSED

    play(story, seed=3, workloads=(work(checkpoint=Checkpoint(place=CheckpointPlace.DISK)),))


async def _befall(world: Rehearsed, what: str) -> None:
    if what == "unaffordable":
        return
    if what == "doubt":
        world.weather("server_error_before", route="PUT /asks", seconds=86_400)
        await world.cycle(minutes=1)
        world.weather("server_error_before", route="GET /instances", seconds=86_400)
        return
    await world.until_running()
    await world.cycle(minutes=5)
    contract = world.live()[0]
    if what == "paused":
        world.rival(contract.slice.machine_id)
    elif what == "broke":
        world.weather("no_credit")
    elif what == "offline":
        world.weather("host_offline", machine_id=contract.slice.machine_id)
    elif what == "foreign":
        world.foreign()


async def _written(world: Rehearsed) -> tuple[object, ...]:
    """Return the state that a side effect would change: orders, and every row but those of plain metering."""
    reader = await world.app.ledger.reader()
    decisions = [(each.slot, each.gist) for each in await reader.decisions()]
    events = [event.event_id for event in await world.events()]
    intents = [(intent.intent_id, intent.state) for intent in await world.intents()]
    leases = [(lease.lease_id, lease.state, lease.state_since, lease.gpu_rate) for lease in await world.past_leases()]
    return len(world.orders), decisions, events, intents, leases
