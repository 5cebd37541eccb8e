"""dstack keeps a machine idle for some seconds, and may place the next run on it: that rent is given back."""

from pathlib import Path

import pytest

from agent.domain.record.tally import Counted
from agent.markets.dstack import names
from agent.simulator import faults
from tests.scenarios.test_dstack import billing, running, server
from tests.support.both import Both

ORDER = {"type": "task", "fleets": ["gpubid"], "backends": ["cloudrift"], "instance_types": ["rtx4090-1x"]}


def leave_idle(world: Both) -> None:
    """Leave an idle machine of a person's run behind."""
    server(world).submit({"configuration": ORDER}, "a-person")
    world.clock.advance(600.0)
    server(world).idle_seconds = 1800.0
    server(world).stop("a-person")


async def test_a_machine_of_an_earlier_run_is_refused_and_ends(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        leave_idle(world)
        await world.until(lambda: len(server(world).runs) >= 2, minutes=5)
        server(world).idle_seconds = 0.0
        await world.until(lambda: len(server(world).machines) >= 2, minutes=300)
        (refused,) = await world.events("lease.mismatched")
        assert "used-before" in refused.reason
        assert await world.events("lease.failed", "protection.tripped", "alert.not_as_rented") == []
        known = world.app.ledger.recollection(world.clock.now())
        assert [each for each in known.tallies if each.counted is Counted.FAILED_START] == []
        await world.until(lambda: len(world.running()) == 1, minutes=180)
        await world.cycle(minutes=30)
        assert [lease.instance_id for lease in world.leases()] == [run.uuid for run in billing(world)]
        assert len(billing(world)) == 1


async def test_it_holds_no_market_either_if_the_answer_to_its_order_was_lost(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        leave_idle(world)
        weather = world.simulator.sides["dstack"].weather
        assert weather is not None
        route = "POST /api/project/main/runs/apply"
        lost = weather.add(faults.parse({"fault": "server_error_after", "market": "dstack", "route": route}))
        await world.until(lambda: len(server(world).runs) >= 2, minutes=5)
        weather.clear(lost)
        server(world).idle_seconds = 0.0
        await world.until(lambda: len(server(world).machines) >= 2, minutes=300)
        (refused,) = await world.events("lease.mismatched")
        assert "used-before" in refused.reason
        assert await world.events("protection.tripped", "alert.not_as_rented") == []


@pytest.mark.nightly
async def test_a_server_whose_machines_all_seem_old_is_left_alone_for_longer_and_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "reused", lambda _, machines: "pool/used-before/m" if machines else "")
    async with running(tmp_path) as world:
        await world.cycle(minutes=6 * 60)
        assert 3 <= len(await world.events("lease.mismatched")) <= 30
        assert await world.events("alert.not_as_rented")
