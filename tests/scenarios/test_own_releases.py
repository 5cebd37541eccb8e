"""What we asked the market to end: its absence is our release done, not the market's fault, and costs nothing after."""

from pathlib import Path

from agent.domain.record.intent import IntentKind, IntentState
from tests.support import spending
from tests.support.world import rehearsed, work


async def test_a_release_without_an_answer_is_confirmed_by_what_the_market_denies(tmp_path: Path) -> None:
    """Killed in mid-reply: after half an hour in which no daemon ran the release is done, nobody knows since when."""
    async with rehearsed(tmp_path, workloads=(work(),)) as world:
        held = await world.until_running()
        weather = world.weather("reset", when="after", route="DELETE /instances")
        await spending.kill(world.app)
        assert world.live() == []
        world.simulator.weather.clear(weather)
        world.is_checked = False
        await world.restart(after_seconds=34 * 60)
        await world.cycle(minutes=1)

        releases = await world.intents(IntentKind.RELEASE)
        assert [intent.state for intent in releases] == [IntentState.CONFIRMED]
        assert held.lease_id not in {lease.lease_id for lease in world.leases()}
        charged = sum(sum(contract.charged.values()) for contract in world.contracts())
        assert charged - 0.01 <= await world.spend() <= charged + held.billing_rate.dollars * 36 / 60


async def test_several_releases_of_ours_at_once_are_no_market_fault(tmp_path: Path) -> None:
    """Their replies were lost: three leases are gone from one listing, as we asked."""
    async with rehearsed(tmp_path, workloads=(work(slots=3),)) as world:
        await world.until_running()
        weather = world.weather("reset", when="after", route="DELETE /instances")
        await spending.kill(world.app)
        assert world.live() == []
        world.simulator.weather.clear(weather)
        await world.cycle(minutes=1)
        assert not await world.events("alert.market_fault")
        assert world.leases() == []
        await spending.lift(world.app)
        await world.until_running(minutes=45)
