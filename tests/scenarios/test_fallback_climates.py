"""A workload of Vast with dstack as its fallback, in bad weather: work goes on elsewhere, and comes back (nightly)."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.domain import money
from agent.domain.market import gpu
from agent.domain.work.workload import Fallback, Requirements
from agent.markets.dstack.vendor_record import DstackOptions
from agent.simulator import climate_files
from agent.simulator.dstack.world import World
from tests.support import builders
from tests.support.both import Both, both
from tests.support.scene import MINUTE

pytestmark = [pytest.mark.nightly, pytest.mark.long(60)]
WANTS = Requirements(gpu_models=(gpu.model("RTX 4090"),), verified_only=False)
OPTIONS = {"dstack": DstackOptions(fleet="gpubid", backends=("aws", "cloudrift"))}


@contextlib.asynccontextmanager
async def weather(directory: Path, climate: str, strategy: str) -> AsyncIterator[Both]:
    work = builders.workload(
        markets=("vast",),
        fallback=Fallback(("dstack",)),
        strategy=strategy,
        max_price=money.per_hour("0.80"),
        requirements=WANTS,
    )
    there = climate_files.named(climate)
    async with both(
        directory, work, markets=("vast", "dstack"), options=OPTIONS, climate=there, seed=2, poll=MINUTE, is_wired=True
    ) as world:
        yield world
        paid = clouds(world).charged_total() + world.hosts.truth()["charged_total"]
        assert await world.spend() == pytest.approx(paid, rel=0.01)


def clouds(world: Both) -> World:
    side = world.simulator.sides["dstack"]
    side.wake(world.clock.time())
    found = side.world  # type: ignore[attr-defined]
    assert isinstance(found, World)
    return found


async def played(world: Both, hours: int) -> set[str]:
    """Play some hours. Return the markets on which a slot ran; no slot ever runs twice."""
    used = set()
    for _ in range(hours * 12):
        await world.cycle(minutes=5)
        running = world.running()
        assert len({lease.slot for lease in running}) == len(running)
        used |= {lease.market for lease in running}
    return used


async def test_a_rise_of_prices_moves_work_to_a_cloud_and_the_next_loss_brings_it_back(tmp_path: Path) -> None:
    async with weather(tmp_path, "price_spike", "patient") as world:
        assert await played(world, 4) == {"vast"}
        assert "dstack" in await played(world, 3), "prices are twice as high"
        await played(world, 1)
        assert len(world.running()) == 1
        for run in clouds(world).live_contracts():
            clouds(world).interrupt(run.host.machine_id)
        await world.until(lambda: [lease.market for lease in world.running()] == ["vast"], minutes=240)
        await world.until(lambda: len(world.leases()) == 1, minutes=60)


async def test_work_on_a_cloud_goes_on_through_a_blackout(
    tmp_path: Path,
) -> None:
    async with weather(tmp_path, "blackout", "ondemand") as world:
        # The cloud takes no machine on demand back.
        clouds(world).kinds = [kind for kind in clouds(world).kinds if not kind.is_spot]
        for machine_id in list(world.hosts.hosts):
            world.hosts.set_host_offline(machine_id, None)
        await world.until(lambda: [lease.market for lease in world.running()] == ["dstack"], minutes=60)
        before = {lease.instance_id for lease in world.running()}
        await played(world, 3)
        assert {run.uuid for run in clouds(world).live_contracts()} == before
