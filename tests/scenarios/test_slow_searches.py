"""Searches that take long delay neither listings nor endings for long: what is left of them waits for a later cycle."""

from pathlib import Path
from typing import Any

import pytest

from agent.domain import money
from agent.domain.work.order import Order
from agent.simulator import faults
from tests.scenarios.test_dstack import OPTIONS, WANTS, billing
from tests.support import builders
from tests.support.both import both
from tests.support.scene import POLL

PLAN_SECONDS = 20.0
WAITING = 7


@pytest.mark.nightly
async def test_plans_that_take_long_leave_time_to_watch_an_end(tmp_path: Path) -> None:
    """An end that no look shows for two minutes is believed only on a person's word."""
    plain: dict[str, Any] = {"strategy": "ondemand", "requirements": WANTS, "markets": ("dstack",)}
    train = builders.workload(max_price=money.per_hour(3), **plain)
    # Nothing is as cheap, and each has a question of its own.
    dear = [
        builders.workload(name=f"w{each}", max_price=money.per_hour(0.01), disk_gb=30 + each, **plain)
        for each in range(WAITING)
    ]
    async with both(tmp_path, train, *dear, markets=("dstack",), options=OPTIONS, poll=POLL, is_wired=True) as world:
        await world.until(lambda: bool(world.running()), minutes=30)
        await world.cycle(minutes=60)
        route = "POST /api/project/main/runs/get_plan"
        fault = {"fault": "slow", "market": "dstack", "route": route, "delay": PLAN_SECONDS}
        weather = world.simulator.sides["dstack"].weather
        assert weather is not None
        weather.add(faults.parse(fault))
        await world.cycle(minutes=10)
        await world.app.say(Order("pause", "train"), "a person")
        began, longest = world.clock.monotonic(), 0.0
        while world.clock.monotonic() - began < 15 * 60:
            cycle = world.clock.monotonic()
            await world.cycle()
            longest = max(longest, world.clock.monotonic() - cycle)
        assert longest < 4 * PLAN_SECONDS
        assert billing(world) == []
        assert await world.events("alert.state_unknown") == []
        assert list(world.leases()) == []
