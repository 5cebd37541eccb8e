"""The ledger never counts less than the market charged: an unseen time counts until a record or a listing dates it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent.domain.record.lease import LeaseState
from tests.support.world import Rehearsed, rehearsed

CENT = 0.01
AWAY_MINUTES = 60.0


async def host_gone(world: Rehearsed) -> None:
    world.market.set_host_gone(world.contract().slice.machine_id)


async def displaced(world: Rehearsed) -> None:
    world.rival(world.contract().slice.machine_id)


async def given_back(world: Rehearsed) -> None:
    """The lease was displaced before the program stopped; it runs again while nobody looks."""
    for rival in list(world.market.rivals):
        world.market.remove_rival(rival)


async def given_back_and_lost(world: Rehearsed) -> None:
    """It runs for a quarter of an hour and is displaced again: each listing shows it stopped."""
    await given_back(world)
    world.clock.advance(AWAY_MINUTES / 4 * 60)
    world.market.advance_to(world.clock.time())
    assert world.contract().holds_gpu
    await displaced(world)


@pytest.mark.parametrize("has_record", [True, False], ids=["recorded", "unrecorded"])
@pytest.mark.parametrize("happens", [host_gone, displaced, given_back, given_back_and_lost])
async def test_what_happens_while_the_program_is_stopped_counts(
    tmp_path: Path, happens: Callable[[Rehearsed], Awaitable[None]], *, has_record: bool
) -> None:
    async with rehearsed(tmp_path) as world:
        world.is_checked = False
        held = await world.until_running()
        await world.cycle(minutes=20)
        for machine_id in list(world.market.hosts):
            if machine_id != world.contract().slice.machine_id:
                world.market.set_host_gone(machine_id)
        if happens in {given_back, given_back_and_lost}:
            await displaced(world)
            await world.until(lambda: world.lease().state is LeaseState.PAUSED, minutes=5)
        await world.close()
        world.clock.advance(AWAY_MINUTES / 2 * 60)
        world.market.advance_to(world.clock.time())
        await happens(world)
        world.clock.advance(AWAY_MINUTES / 2 * 60)
        world.market.advance_to(world.clock.time())
        if not has_record:
            world.weather("server_error_before", route="GET /notifications", seconds=600)
        await world.open()
        await world.cycle(minutes=6)
        over = await world.spend() - world.market.charged_total()
        rate = held.gpu_rate.dollars + held.disk_rate.dollars
        assert -CENT <= over <= CENT + rate * (AWAY_MINUTES + 1) / 60
        if has_record and happens is not host_gone:
            assert over <= CENT, "the market's record dates it: nothing more counts"
