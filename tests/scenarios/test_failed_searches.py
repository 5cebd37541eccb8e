"""Searches that a market refuses or does not answer: they are sent soon after it does, not after their back-off."""

from typing import Any

import pytest

from agent.observe.search_queue import SURVEY_AGAIN, SURVEY_EVERY
from tests.support.scene import MINUTE
from tests.support.world import Rehearsed, play

ROUTE = "/bundles"
FAULTS: list[dict[str, Any]] = [
    {"fault": "throttle_retry_after", "retry_after": 1800},
    {"fault": "server_error_before"},
]
HALF_AN_HOUR = 1800


def searched_at(world: Rehearsed, since: float) -> list[float]:
    calls = [*world.calls("POST", ROUTE, since), *world.calls("GET", ROUTE, since)]
    return sorted(at for at, _, _, status in calls if status == 200)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault["fault"]))
def test_an_empty_slot_is_searched_for_soon_after_the_end_of_an_outage(fault: dict[str, Any]) -> None:
    """It waited seven minutes more: searches that were not answered had made the next ones rarer."""

    async def story(world: Rehearsed) -> None:
        world.weather(route=f"* {ROUTE}", seconds=HALF_AN_HOUR, **fault)
        await world.cycle(minutes=29)
        assert not world.leases()
        await world.cycle(minutes=3)
        assert world.leases()

    play(story, seed=1, poll=MINUTE)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: str(fault["fault"]))
def test_the_prices_of_an_hour_are_not_lost_with_one_failed_search(fault: dict[str, Any]) -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        await world.cycle(minutes=55)
        world.weather(
            route=f"* {ROUTE}", seconds=600, **{**fault, "retry_after": 600} if "retry_after" in fault else fault
        )
        began = world.clock.time()
        await world.cycle(minutes=35)
        assert searched_at(world, began)[0] - began <= 600 + SURVEY_AGAIN + MINUTE.total_seconds() < SURVEY_EVERY

    play(story, seed=1, poll=MINUTE)
