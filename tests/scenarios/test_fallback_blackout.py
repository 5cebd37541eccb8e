"""The auction does not answer: what runs there stays one lease, what is down goes to a cloud, and comes back."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agent.domain.market import gpu
from agent.domain.work.workload import Fallback, Requirements
from agent.simulator import faults
from tests.scenarios.test_dstack import billing, running, server
from tests.support.both import Both

WORK: dict[str, Any] = {
    "markets": ("vast",),
    "strategy": "patient",
    "fallback": Fallback(("dstack",)),
    "requirements": Requirements(gpu_models=(gpu.model("RTX 4090"),), verified_only=False),
}
DARK = {"fault": "server_error_before", "market": "vast", "route": "*", "seconds": 40 * 60}


def darken(world: Both) -> None:
    world.simulator.sides["vast"].weather.add(faults.parse(DARK))  # type: ignore[union-attr]


async def test_work_goes_to_a_cloud_while_the_auction_does_not_answer_and_comes_back(tmp_path: Path) -> None:
    async with running(tmp_path, there=("vast", "dstack"), **WORK) as world:
        # A spot machine would be as cheap as a bid, and stay.
        server(world).kinds = [kind for kind in server(world).kinds if not kind.is_spot]
        began = world.clock.now()
        darken(world)
        await world.until(lambda: bool(world.running()), minutes=35)
        (lease,) = world.running()
        assert lease.market == "dstack"
        assert lease.opened_at - began >= timedelta(minutes=10)
        await world.until(lambda: [one.market for one in world.leases()] == ["vast"], minutes=24 * 60)
        assert billing(world) == []
        assert len([each for each in await world.events("lease.opened") if each.market == "dstack"]) == 1
        paid = server(world).charged_total() + sum(charge.amount for charge in world.charges("vast"))
        assert await world.spend() == pytest.approx(paid, rel=0.02)


async def test_what_runs_at_an_auction_that_does_not_answer_is_not_rented_again_at_a_cloud(tmp_path: Path) -> None:
    async with running(tmp_path, there=("vast", "dstack"), **WORK) as world:
        await world.until(lambda: len(world.running()) == 1, minutes=60)
        (before,) = world.leases()
        assert before.market == "vast"
        darken(world)
        dark = await world.cycle(minutes=30)
        assert not dark.fleet.markets["vast"].is_fresh
        await world.cycle(minutes=30)
        assert [lease.lease_id for lease in world.leases()] == [before.lease_id]
        assert [each.market for each in await world.events("lease.opened")] == ["vast"]
        assert server(world).charged_total() == 0
