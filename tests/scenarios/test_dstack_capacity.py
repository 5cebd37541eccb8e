"""Clouds without capacity, which the server often knows only after the order: nothing is held for it, nothing ends."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from agent.domain.record.tally import Counted
from agent.simulator.dstack.world import World
from tests.scenarios.test_dstack import billing, running, server


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every offer look free, as those of large clouds do wherever there is quota."""
    monkeypatch.setattr(World, "free", lambda *_: 50)


def dry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no cloud have a machine left; their offers say nothing of it."""
    monkeypatch.setattr(world, "_chosen", lambda _: None)


@pytest.mark.nightly
@pytest.mark.parametrize("hours", [2, 8])
async def test_a_dry_night_holds_no_workload_and_ends_no_machine_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    async with running(tmp_path, slots=3) as world:
        await world.until(lambda: len(world.running()) == 3, minutes=60)
        dry(server(world), monkeypatch)
        lost, *kept = billing(world)
        assert lost.machine is not None
        server(world).interrupt(lost.machine.machine_id)
        await world.cycle(minutes=hours * 60)
        assert [run.uuid for run in billing(world)] == [run.uuid for run in kept]
        known = world.app.ledger.recollection(world.clock.now())
        assert list(known.holds) == []
        assert [each for each in known.tallies if each.counted is Counted.FAILED_START] == []
        assert await world.events("lease.failed", "protection.tripped") == []
        monkeypatch.undo()
        await world.until(lambda: len(world.running()) == 3, minutes=30)


async def test_a_run_without_capacity_gives_way_to_the_next_pool_within_three_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as world:
        there = server(world)
        (near,) = (kind for kind in there.kinds if kind.gpu == "RTX4090" and not kind.is_spot and kind.count == 1)
        there.kinds = [near, dataclasses.replace(near, region="far", cents=near.cents + 5)]
        monkeypatch.setattr(
            there, "_chosen", lambda order: next((kind for kind in there.offered(order) if kind != near), None)
        )
        began = world.clock.now()
        await world.until(lambda: bool(world.running()), minutes=30)
        assert "/far/" in world.running()[0].host_id
        first, second = await world.events("lease.opened")
        assert first.at - began < timedelta(minutes=1)
        assert second.at - first.at < timedelta(minutes=3)
        (lost,) = await world.events("lease.start_lost")
        assert lost.lease_id == first.lease_id
        assert await world.events("lease.failed") == []


@pytest.mark.nightly
async def test_a_fleet_that_is_smaller_than_the_slots_keeps_what_runs(tmp_path: Path) -> None:
    async with running(tmp_path, slots=9) as world:
        (fleet,) = server(world).fleets.values()
        fleet["configuration"]["nodes"] = {"min": 0, "max": 4}
        await world.until(lambda: len(world.running()) == 4, minutes=60)
        kept = [run.uuid for run in billing(world)]
        await world.cycle(minutes=3 * 60)
        assert [run.uuid for run in billing(world)] == kept
        assert list(world.app.ledger.recollection(world.clock.now()).holds) == []
