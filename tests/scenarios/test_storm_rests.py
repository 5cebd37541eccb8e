"""Many interruptions of a model within an hour: no bid for it until its cooldown is over or a person says so."""

from pathlib import Path

from agent.act import protection_cooldowns
from tests.support.scene import strategies
from tests.support.world import rehearsed


async def test_a_storm_rests_the_model_and_a_restart_does_not_forget(tmp_path: Path) -> None:
    # On demand nobody is interrupted, and between two losses the strategy may well go there.
    async with rehearsed(tmp_path, hosts=200, tuned=strategies(on_demand_if_cheaper=False)) as world:
        for _ in range(10):
            held = await world.until_running()
            rival = world.rival(int(held.host_id))
            await world.cycle(minutes=3)
            world.market.remove_rival(rival)
            if await world.events(protection_cooldowns.TRIPPED):
                break
        trips = await world.events(protection_cooldowns.TRIPPED)
        assert trips, "no storm was seen"
        assert trips[0].reason_code == "storm"
        await world.restart()
        rests = world.app.ledger.recollection(world.clock.now()).expiring
        assert any(rest.place[0] == "storm" and rest.place[1].endswith(held.gpu) for rest in rests)
