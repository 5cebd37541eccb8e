"""Listings that look complete and are not: a healthy lease is neither released nor replaced."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain.market.label import Label
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.order import Order
from agent.markets import labels
from tests.support.scene import POLL, heavy
from tests.support.world import FLEET, rehearsed, work

LIES: list[dict[str, Any]] = [
    {"fault": "empty_list"},
    {"fault": "partial_list", "keep": 0.5},
    {"fault": "partial_list", "keep": 0.0},
    {"fault": "stale_list"},
]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: "-".join(str(value) for value in lie.values()))
@pytest.mark.parametrize("slots", [1, 3])
async def test_nothing_is_released_or_rented_twice(tmp_path: Path, lie: dict[str, Any], slots: int) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=slots),)) as world:
        await world.until_running()
        kept = {contract.contract_id for contract in world.live()}
        orders = len(world.orders)

        world.weather(route="GET /instances", seconds=570, **lie)
        await world.cycle(minutes=10)
        await world.until_running(minutes=5)

        assert {contract.contract_id for contract in world.live()} == kept
        assert len(world.orders) == orders
        assert not await world.events("lease.gone", "lease.interrupted")


async def test_stale_list_from_before_a_rent(tmp_path: Path) -> None:
    """It does not show the new instance; the instance's own record does."""
    async with rehearsed(tmp_path) as world:
        world.weather("stale_list", route="GET /instances", seconds=570)
        await world.cycle(minutes=9)
        assert len(world.contracts()) == 1
        await world.until_running()
        assert len(world.contracts()) == 1


async def test_stale_list_shows_what_was_released(tmp_path: Path) -> None:
    """A listing goes on showing an instance that is gone: it is not adopted, not paid for twice, not mourned."""
    async with rehearsed(tmp_path) as world:
        held = await world.until_running()
        old = world.contract()
        await world.cycle(minutes=30)
        world.rival(old.slice.machine_id)
        await world.until(lambda: len(world.live()) == 2)
        world.weather("stale_list", route="GET /instances", seconds=570)
        await world.cycle(minutes=15)
        await world.until_running()
        await world.cycle(minutes=1)
        assert old.ended is not None
        assert len(world.contracts()) == 2
        lease = world.lease()
        assert (lease.slot, lease.state) == (held.slot, LeaseState.RUNNING)


async def test_lie_while_an_interruption_happens(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(heavy(),)) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.weather("stale_list", route="GET /instances", seconds=300)
        world.rival(world.contract().slice.machine_id, bid=held.gpu_rate.dollars * 1.2)
        await world.cycle(minutes=5)
        await world.until_running(minutes=10)
        assert world.lease().lease_id == held.lease_id
        assert len(world.contracts()) == 1


async def test_what_was_adopted_believed_gone_and_is_listed_again_is_metered(tmp_path: Path) -> None:
    """It gets a second lease; the id of its first one is taken, and the first look's reading is out of date."""
    async with rehearsed(tmp_path, poll=POLL) as world:
        await world.close()
        stranger = world.foreign(labels.text(Label(FLEET, Slot("train", 0), "feedfacefeedface")))
        world.clock.advance(30)
        await world.open()
        await world.cycle(minutes=5)
        assert world.lease().instance_id == str(stranger.contract_id)
        await world.app.say(Order("drain", "train"), "a test")
        world.is_checked = False  # the market denies it for longer than any lie that the program must see through
        world.weather("empty_list", route="GET /instances", seconds=400)
        world.weather("wrong_account", route="GET /instances/{", seconds=400)
        await world.until(lambda: not world.leases())
        await world.cycle(minutes=5)
        assert world.lease().instance_id == str(stranger.contract_id)
        assert len(await world.past_leases()) == 2
