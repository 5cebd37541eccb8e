"""A start that the market queued, or may have queued, is taken back when a person stops the lease."""

import dataclasses
from pathlib import Path

import pytest

from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support import spending
from tests.support.world import Rehearsed, rehearsed, work

ON_DISK = work(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
TENURES = pytest.mark.parametrize("strategy", ["patient", "ondemand"])


def of(strategy: str) -> Workload:
    return dataclasses.replace(ON_DISK, strategy=strategy)


async def resumed_on_a_full_host(world: Rehearsed) -> int:
    """Pause the one lease, let a rival take its GPUs, and order its start again. Return the rival."""
    held = await world.until_running()
    await world.cycle(minutes=10)
    await world.app.say(Order("pause", "train/0"), "a test")
    await world.cycle(minutes=3)
    assert world.lease().is_down
    return world.rival(int(held.host_id))


async def resume(world: Rehearsed) -> None:
    await world.app.say(Order("resume", "train/0"), "a test")
    await world.cycle()
    assert world.contract().is_queued


async def starts_nothing(world: Rehearsed, rival: int) -> None:
    """Assert that the GPUs stay idle after the rival has left, also while the daemon is stopped."""
    assert not world.contract().is_queued
    await world.close()
    world.market.advance_to(world.clock.time())
    world.market.remove_rival(rival)
    world.clock.advance(8 * 3600)
    world.market.advance_to(world.clock.time())
    assert not world.contract().holds_gpu
    await world.open()


def pauses(done: list[Intent]) -> list[IntentState]:
    return [intent.state for intent in done if intent.kind is IntentKind.PAUSE]


@TENURES
async def test_a_pause_takes_back_a_start_that_the_market_queued(tmp_path: Path, strategy: str) -> None:
    async with rehearsed(tmp_path, workloads=(of(strategy),)) as world:
        rival = await resumed_on_a_full_host(world)
        await resume(world)
        _, done = await world.app.say(Order("pause", "train/0"), "a test")
        assert pauses(done) == [IntentState.CONFIRMED]
        await starts_nothing(world, rival)


@TENURES
@pytest.mark.parametrize("order", ["pause", "kill"])
async def test_a_pause_takes_back_a_start_whose_answer_was_lost(tmp_path: Path, strategy: str, order: str) -> None:
    async with rehearsed(tmp_path, workloads=(of(strategy),)) as world:
        rival = await resumed_on_a_full_host(world)
        world.weather(fault="server_error_after", route="PUT /instances")
        await resume(world)
        world.still()
        assert [intent.kind for intent in world.open_intents()] == [IntentKind.RESUME]
        if order == "kill":
            done = await spending.kill(world.app, keep_disks=True)
        else:
            _, done = await world.app.say(Order("pause", "train/0"), "a test")
        assert pauses(done) == [IntentState.CONFIRMED]
        sent = len(await world.intents(IntentKind.PAUSE))
        await world.cycle(minutes=15)
        assert len(await world.intents(IntentKind.PAUSE)) == sent, "one pause took it back"
        assert not world.open_intents()
        assert world.lease().is_down
        await starts_nothing(world, rival)


@TENURES
async def test_a_pause_whose_own_answer_is_lost_is_sent_again_while_the_start_is_in_doubt(
    tmp_path: Path, strategy: str
) -> None:
    """Also by a daemon that began after both: it knows of them from its ledger."""
    async with rehearsed(tmp_path, workloads=(of(strategy),)) as world:
        rival = await resumed_on_a_full_host(world)
        world.weather(fault="server_error_after", route="PUT /instances")
        await resume(world)
        world.still()
        world.weather(fault="server_error_before", route="PUT /instances")
        await world.app.say(Order("pause", "train/0"), "a test")
        assert world.contract().is_queued
        await world.restart()
        world.still()
        await world.cycle(minutes=3)
        assert world.lease().state is LeaseState.PAUSED
        await starts_nothing(world, rival)
