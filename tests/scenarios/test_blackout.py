"""The market's API is down for half an hour: running leases go on, nothing is released, nothing is rented."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain.record.lease import LeaseState
from tests.support.scene import heavy
from tests.support.world import Rehearsed, rehearsed, work

DARK: list[dict[str, Any]] = [
    {"fault": "server_error_before"},
    {"fault": "reset", "when": "after"},
    {"fault": "reset", "when": "before"},
    {"fault": "html_403"},
    {"fault": "throttle_retry_after", "retry_after": 1800},
    {"fault": "truncated"},
    {"fault": "malformed"},
    {"fault": "slow", "delay": 40},
]
HALF_AN_HOUR = 1800


async def _dark(world: Rehearsed, fault: dict[str, Any]) -> None:
    world.weather(route="*", seconds=HALF_AN_HOUR, **fault)
    until = world.clock.time() + HALF_AN_HOUR
    while world.clock.time() < until:
        await world.cycle()


@pytest.mark.parametrize("fault", DARK, ids=lambda fault: "-".join(str(value) for value in fault.values()))
async def test_nothing_is_released_or_rented_in_the_dark(tmp_path: Path, fault: dict[str, Any]) -> None:
    async with rehearsed(tmp_path, workloads=(work(slots=2),)) as world:
        await world.until_running()
        kept = {contract.contract_id for contract in world.live()}
        orders = len(world.orders)

        await _dark(world, fault)
        await world.until_running(minutes=15)
        await world.cycle(minutes=1)

        assert {contract.contract_id for contract in world.live()} == kept
        assert len(world.orders) == orders
        assert not await world.events("lease.interrupted", "lease.missing", "lease.gone")
        assert [lease.state for lease in world.leases()] == [LeaseState.RUNNING] * 2


async def test_a_start_is_not_given_up_in_the_dark(tmp_path: Path) -> None:
    """It may run by now: that it was loading when last seen is no reason to release it unseen."""
    async with rehearsed(tmp_path, workloads=(work(image_gb=0.5),)) as world:
        await world.cycle(minutes=1)
        contract = world.contract()
        assert world.lease().state is LeaseState.STARTING
        await _dark(world, {"fault": "server_error_before"})
        assert contract.first_started is not None, "it never started; the story tells nothing"
        await world.until_running(minutes=15)
        assert world.contract() is contract


async def test_an_interruption_in_the_dark_is_seen_after_it(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, workloads=(heavy(),)) as world:
        held = await world.until_running()
        await world.cycle(minutes=30)
        world.weather("server_error_before", route="*", seconds=HALF_AN_HOUR)
        await world.cycle(minutes=5)
        lost_at = world.clock.time()
        world.rival(world.contract().slice.machine_id, bid=held.gpu_rate.dollars * 1.2)
        await world.until_running(minutes=60)
        await world.cycle(minutes=30)
        assert world.lease().lease_id == held.lease_id
        lost = (await world.events("lease.interrupted"))[-1]
        assert abs(lost.at.timestamp() - lost_at) < 30, "the market's inbox tells when it was, half an hour ago"
