"""A reload without a market's table pays for nothing there, and with that table again it does."""

from dataclasses import replace
from pathlib import Path

from tests.support import builders
from tests.support.both import OF_THE_PAST, both
from tests.support.scene import POLL, strategies


async def test_a_market_that_a_reload_removes_is_paid_nothing_until_it_is_back(tmp_path: Path) -> None:
    """Vast is cheaper, so without its table alone the workload runs at RunPod."""
    async with both(tmp_path, builders.workload("train", slots=0), climate=OF_THE_PAST, poll=POLL) as world:
        await world.cycle()
        runpod_alone = tuple(each for each in world.config.markets if each.name == "runpod")
        wants = replace(world.config, workloads=(builders.workload("train"),))
        world.app.reload(replace(wants, markets=runpod_alone), strategies())
        await world.until(lambda: bool(world.running()))
        views = world.app.seen.fleet.markets if world.app.seen is not None else {}
        assert views["vast"].no_spend_because.startswith("[markets.vast] is gone from the file")
        assert [lease.market for lease in world.leases()] == ["runpod"]
        assert world.contracts("vast") == []
        two = replace(wants, workloads=(builders.workload("train"), builders.workload("here", markets=("vast",))))
        world.app.reload(two, strategies())
        await world.until(lambda: len(world.running()) == 2)
        assert sorted(lease.market for lease in world.leases()) == ["runpod", "vast"]
