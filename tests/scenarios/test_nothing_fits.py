"""A slot for which nothing fits shows how many of the market's offers each requirement leaves."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from agent.domain import money
from agent.domain.market.offer import Offer
from agent.ledger.tables import decisions, schema
from agent.markets import pace
from agent.markets.port import OfferQuery
from agent.observe import wide_sample
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


async def recorded(world: Rehearsed) -> list[str]:
    """Return the sentences of the decisions in the ledger, the oldest first."""
    reader = await world.app.ledger.reader()
    query = sa.select(schema.decisions).order_by(schema.decisions.c.decision_id)
    return [made.reason.sentence for made in await reader._all(query, decisions.decision_of)]


def test_an_empty_slot_tells_why_once_an_hour_of_a_wide_question() -> None:
    async def story(world: Rehearsed) -> None:
        await world.cycle()
        await world.cycle()
        assert "offers sampled at" in reason(world)
        assert "0 at $0.0001/h or less; the cheapest that fits otherwise costs $0." in reason(world)
        first = sampled(world)
        assert first is not None
        assert await recorded(world) == [reason(world)]
        await world.cycle(minutes=50)
        assert sampled(world) == first
        assert len(await recorded(world)) == 1
        await world.cycle(minutes=20)
        await world.cycle()
        second = sampled(world)
        assert second is not None
        assert second >= first + timedelta(hours=1)
        # `fleet` and the page show recorded samples: each sample is recorded.
        assert (await recorded(world))[1:] == [reason(world)]

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
        asked.market._rows.count(pace.DAILY_ROWS - wide_sample.SPARED_ROWS)  # type: ignore[attr-defined]
        await world.cycle()
        await world.cycle()
        assert sampled(world) is None
        assert "no " in reason(world)

    play(story, seed=1, workloads=(CHEAP,))


def test_an_answer_is_kept_while_the_question_for_another_number_of_gpus_fails() -> None:
    async def story(world: Rehearsed) -> None:
        (asked,) = world.app.pollers
        ask, counts = asked.market.offers, []

        async def offers(query: OfferQuery) -> Sequence[Offer]:
            if query.is_sample:
                counts.append(query.requirements.gpus)
                if counts == [1, 2]:
                    world.weather("server_error_before", route="POST /bundles")
            try:
                return await ask(query)
            finally:
                world.still()

        asked.market.offers = offers  # type: ignore[method-assign]
        await world.cycle(minutes=5)
        assert counts == [1, 2]
        assert sampled(world) is None, "without the second answer a slot of two GPUs would say that there are none"
        await world.cycle(minutes=15)
        assert counts == [1, 2, 2], "the first answer was asked for twice"
        assert {offer.gpus for offer in asked.view.sample} == {1, 2}

    both = replace(CHEAP.requirements, gpus=2)
    play(story, seed=1, workloads=(CHEAP, replace(CHEAP, name="wide", requirements=both)))
