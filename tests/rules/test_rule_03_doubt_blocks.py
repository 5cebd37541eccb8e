"""Rule 3: doubt blocks its slot and counts as spend until the market's own listing settles it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent.domain.record.intent import IntentState
from tests.support.losses import AFTER, BEFORE, seeds
from tests.support.world import Rehearsed, play

DOUBTFUL_BEFORE = [each for each in BEFORE if not each["fault"].startswith("throttle")]
"""A market that says it was called too often has proven that nothing was done."""


@given(
    seed=seeds,
    loss=st.sampled_from(DOUBTFUL_BEFORE + AFTER),
    dark=st.sampled_from([0, 120, 900]),
    restart=st.booleans(),
)
def test_doubt_counts_and_blocks_until_the_listing_settles_it(
    seed: int, loss: dict[str, Any], dark: float, *, restart: bool
) -> None:
    is_done = loss in AFTER

    async def story(world: Rehearsed) -> None:
        weather = world.weather(**(loss | {"route": "PUT /asks"}))
        await world.cycle()
        world.simulator.weather.clear(weather)
        intent = world.open_intents()[0]
        assert intent.state is IntentState.IN_DOUBT
        assert bool(world.live()) is is_done
        if dark:
            world.weather("server_error_before", route="GET /instances", seconds=dark)
        if restart:
            await world.restart()
        began = world.clock.time()
        while any(each.intent_id == intent.intent_id for each in world.open_intents()):
            done = await world.cycle()
            if not any(each.intent_id == intent.intent_id for each in world.open_intents()):
                break
            assert sum(order.kind.is_paying for order in world.orders) == 1, "paid for a slot in doubt"
            assert done.plan.standing.instances == 1
            assert done.plan.standing.rate >= intent.rate
            owed = intent.rate.over(world.clock.time() - began - 30)
            assert done.plan.standing.today >= owed, "doubt costs nothing, it says"
            assert world.clock.time() - began < 2400
        settled = next(each for each in await world.intents() if each.intent_id == intent.intent_id)
        assert settled.state is (IntentState.CONFIRMED if is_done else IntentState.VOID)
        if not is_done:
            assert settled.resolved_at is not None
            assert settled.resolved_at.timestamp() - began >= 600 - 30, "void before the grace was over"
        await world.until_running()
        assert len(world.live()) == 1

    play(story, seed=seed)
