"""A slot for which nothing fits says what each requirement leaves of what the market has."""

from dataclasses import replace
from datetime import datetime, timedelta

from agent.domain import money
from agent.markets import pace
from agent.observe import poller
from tests.support.scene import work
from tests.support.world import Rehearsed, play

CHEAP = replace(work(slots=1), max_price=money.per_hour("0.0001"))


def sampled(world: Rehearsed) -> datetime | None:
    """Return when the market's last wide question was answered."""
    (asked,) = world.app.pollers
    return asked.view.sampled_at


def reason(world: Rehearsed) -> str:
    assert world.app.seen is not None
    (decision,) = world.app.seen.plan.decisions
    return decision.reason.sentence


def test_an_empty_slot_tells_why_once_an_hour_of_a_wide_question() -> None:
    async def story(world: Rehearsed) -> None:
        await world.cycle()
        await world.cycle()
        assert "offers sampled at" in reason(world)
        assert "0 at $0.0001/h or less; the cheapest that fits otherwise costs $0." in reason(world)
        first = sampled(world)
        assert first is not None
        await world.cycle(minutes=50)
        assert sampled(world) == first
        await world.cycle(minutes=20)
        await world.cycle()
        second = sampled(world)
        assert second is not None
        assert second >= first + timedelta(hours=1)

    play(story, seed=1, workloads=(CHEAP,))


def test_a_slot_that_runs_asks_nothing_wide() -> None:
    async def story(world: Rehearsed) -> None:
        await world.until_running()
        asked = sampled(world)
        await world.cycle(minutes=150)
        assert sampled(world) == asked

    play(story, seed=1, workloads=(work(slots=1),))


def test_a_ration_that_is_nearly_spent_is_left_to_the_searches_that_rent() -> None:
    async def story(world: Rehearsed) -> None:
        (asked,) = world.app.pollers
        asked.market._rows.count(pace.DAILY_ROWS - poller.SPARED_ROWS)  # type: ignore[attr-defined]
        await world.cycle()
        await world.cycle()
        assert sampled(world) is None
        assert "no " in reason(world)

    play(story, seed=1, workloads=(CHEAP,))
