"""Rule 12, for the credit that must stay: a wrong credit of ten minutes pauses nothing, and a true one does."""

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.observe.credit_readings import PATIENCE_SECONDS
from tests.support.world import Rehearsed, play

FLOOR = Limits(min_credit=money.usd(5))


def test_a_wrong_credit_pauses_nothing_and_rents_nothing() -> None:
    async def story(world: Rehearsed) -> None:
        held = await world.until_running()
        await world.cycle(minutes=6)
        orders = len(world.orders)
        world.weather("field_lie", field="credit", how="set", value=0.0, route="GET /users")
        await world.cycle(minutes=10)
        world.still()
        await world.cycle(minutes=6)
        assert world.orders[orders:] == []
        assert (world.lease().lease_id, world.lease().state) == (held.lease_id, LeaseState.RUNNING)

    play(story, limits=FLOOR, credit=50.0)


def test_a_true_fall_to_the_floor_pauses() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        world.market.advance_to(world.clock.time())
        world.market.set_credit(4.0)
        await world.until(lambda: world.lease().state is LeaseState.PAUSED, minutes=PATIENCE_SECONDS / 60 + 6 + 2 * 2)
        assert await world.intents(IntentKind.PAUSE)

    play(story, limits=FLOOR, credit=50.0)
