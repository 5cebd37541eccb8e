"""A workload without slots stays in the configuration, rents nothing and asks the market nothing."""

import dataclasses
from pathlib import Path

from agent.domain.record.lease import LeaseState
from tests.support.world import Rehearsed, rehearsed, strategies, work


async def test_a_workload_without_slots_rents_nothing_and_uses_no_rows(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, hosts=90, workloads=(work(slots=0),)) as world:
        await world.cycle(minutes=150)
        assert world.orders == []
        assert world.truth()["search_rows"] == 0
        assert world.leases() == []
        take(world, slots=1)
        await world.until(lambda: any(lease.state is LeaseState.RUNNING for lease in world.leases()))
        assert world.truth()["search_rows"] > 0


async def test_a_reload_to_no_slots_is_refused_while_a_lease_is_held(tmp_path: Path) -> None:
    async with rehearsed(tmp_path, hosts=90, workloads=(work(),)) as world:
        await world.until_running()
        parked = dataclasses.replace(world.config, workloads=(work(slots=0),))
        (refused,) = world.app.findings(parked)
        assert refused.is_refusal
        assert "first `gpubid drain train/0`, then `gpubid release train/0`" in refused.sentence


def take(world: Rehearsed, *, slots: int) -> None:
    """Let the program take a configuration with so many slots."""
    config = dataclasses.replace(world.config, workloads=(work(slots=slots),))
    assert not [found for found in world.app.findings(config) if found.is_refusal]
    world.app.reload(config, strategies())
