"""What `spend` and `fleet` say of one instant is the same money, also between two meterings."""

from agent.ledger.reader import open_reader
from agent.web.reading import spend_reports, views
from tests.support.scene import work
from tests.support.world import Rehearsed, play


def test_spend_and_fleet_agree_between_two_meterings() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=7)
        world.clock.advance(170.0)
        reader = await open_reader(world.app.ledger.path)
        try:
            now = world.clock.now()
            report = await spend_reports.answer(reader, "/spend", {"by": "workload"}, now)
            past = await spend_reports.answer(reader, "/spend", {"until": now.date().isoformat()}, now)
            fleet = views.fleet((), await reader.recollection(now), (), now)
        finally:
            await reader.close()
        assert report["as_of"] == now.isoformat()
        assert report["unmetered_dollars"] > 0
        told = report["total"]["dollars"] + report["unmetered_dollars"]
        assert abs(told - fleet["spent_today_dollars"]) < 1e-6
        assert past["unmetered_dollars"] == 0

    play(story, seed=1, workloads=(work(slots=1),))
