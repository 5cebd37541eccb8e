"""Files without a market's table: a reload pays for nothing there, and nothing that may bill there is left alone."""

from dataclasses import replace
from pathlib import Path

from agent.domain.record.lease import LeaseState
from agent.domain.work.order import Order
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


async def test_a_lease_whose_release_is_throttled_refuses_files_without_its_market(tmp_path: Path) -> None:
    job = builders.workload("train", markets=("runpod",))
    async with both(tmp_path, job, climate=OF_THE_PAST, poll=POLL) as world:
        await world.until(lambda: bool(world.running()))
        (held,) = world.leases()
        world.weather("runpod", "throttle_retry_after", retry_after=60)
        await world.app.say(Order("kill", held.lease_id), "a person")
        assert [lease.state for lease in world.leases()] == [LeaseState.RELEASING]
        vast_alone = tuple(each for each in world.config.markets if each.name == "vast")
        without = replace(world.config, markets=vast_alone, workloads=(builders.workload("train"),))
        for is_start in (True, False):
            codes = [each.code for each in world.app.findings(without, is_start=is_start) if each.is_refusal]
            assert codes == ["market_gone"]
        world.still()
        await world.until(lambda: not world.leases())
        assert world.app.findings(without, is_start=True) == ()
        assert not world.live()
