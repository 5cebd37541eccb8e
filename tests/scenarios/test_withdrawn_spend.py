"""A reload that takes the permission to spend from one market of two: that market alone is paid nothing."""

from dataclasses import replace
from pathlib import Path

from tests.support import builders
from tests.support.both import OF_THE_PAST, both
from tests.support.scene import POLL, strategies


async def test_one_market_without_spend_stops_nothing_on_the_other_and_pays_again_by_a_reload(tmp_path: Path) -> None:
    here, there = (builders.workload(f"on-{name}", slots=0, markets=(name,)) for name in ("vast", "runpod"))
    async with both(tmp_path, here, there, climate=OF_THE_PAST, poll=POLL) as world:
        live = tuple(replace(each, simulated="", spend=True) for each in world.config.markets)
        world.config = replace(world.config, markets=live)
        await world.restart()
        await world.cycle()
        wants = replace(world.config, workloads=(here.with_slots(1), there.with_slots(1)))
        reads_only = tuple(replace(each, spend=each.name != "runpod") for each in live)
        world.app.reload(replace(wants, markets=reads_only), strategies())
        await world.until(lambda: bool(world.running()))
        await world.cycle(minutes=10)
        assert [lease.market for lease in world.leases()] == ["vast"]
        assert world.contracts("runpod") == []
        (told,) = (each for each in world.app.notices() if each.about != "leader")
        assert (told.about, told.code) == ("runpod", "no_spend")
        assert "spend = false in [markets.runpod] since a reload" in told.sentence

        world.app.reload(wants, strategies())
        await world.until(lambda: len(world.running()) == 2)
        assert sorted(lease.market for lease in world.leases()) == ["runpod", "vast"]
        assert not [each for each in world.app.notices() if each.about != "leader"]
