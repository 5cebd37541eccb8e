"""The market drops the connection on a rent: it saw one PUT, whether it had applied it or not."""

from pathlib import Path

import pytest

from agent.domain.record.intent import IntentState
from tests.support.world import rehearsed


@pytest.mark.parametrize("when", ["before", "after"])
async def test_dropped_rent_is_seen_once(tmp_path: Path, when: str) -> None:
    async with rehearsed(tmp_path) as world:
        world.weather("reset", when=when, route="PUT /asks")
        await world.cycle(minutes=5)

        puts = [call for call in world.truth()["calls"] if call["method"] == "PUT"]
        assert [(call["path"].split("/")[3], call["status"]) for call in puts] == [("asks", 0)]
        assert len(world.orders) == 1, "the request arrived twice below HTTP's own record"
        expected = {"before": IntentState.IN_DOUBT, "after": IntentState.CONFIRMED}[when]
        assert [intent.state for intent in await world.intents()] == [expected]
        assert len(world.contracts()) == (0 if when == "before" else 1)
