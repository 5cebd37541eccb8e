"""Listings that look complete and are not: a healthy lease is neither released nor replaced."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.lease import LeaseState
from tests.support.scene import heavy
from tests.support.world import rehearsed, work

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
    """It does not show what was just rented; the instance's own record does."""
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
