"""The market in memory keeps the promises of the port and is the same for the same seed."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.domain.market.instance import InstanceState
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import per_hour
from agent.domain.work.workload import Requirements
from agent.lab.engine.engine import Waits, at_once
from agent.lab.engine.lab_job import Job
from agent.lab.engine.lookahead_check import GPU, START
from agent.lab.engine.memory_market import Exchange, Pool
from agent.lab.traces.course import Course, Delays, Spells, drawn
from agent.markets import market_errors, port

MINUTE = timedelta(minutes=1)
QUERY = port.OfferQuery(Requirements(), 10.0)
FIXED = Delays(median=120.0, spread=0.0)


def exchange(available: Sequence[int] = (1,), **changes: Any) -> Exchange:
    """Build a market whose ticks are ten minutes, and a job of one hour saved every ten minutes."""
    course = Course(START, 10 * MINUTE, tuple(available), (per_hour("1.00"),), per_hour("3.00"))
    job = Job(1.0, 10 * MINUTE, MINUTE)
    return Exchange(Pool(course, GPU, delays=FIXED, **changes), "seed", START, job)


def offers(market: Exchange) -> Sequence[Offer]:
    return at_once(market.offers(QUERY))


def rented(market: Exchange, *, bid: str | None = None) -> str:
    tenure = Tenure.ON_DEMAND if bid is None else Tenure.INTERRUPTIBLE
    terms = port.Terms(tenure, per_hour(bid) if bid else None, 10.0, "image")
    return at_once(market.rent(offers(market)[0], terms, "label"))


def state(market: Exchange, instance_id: str) -> InstanceState:
    return at_once(market.instance(instance_id)).state


def test_a_start_takes_its_delay_and_then_works() -> None:
    market = exchange()
    held = rented(market)
    market.advance(START + MINUTE)
    assert state(market, held) is InstanceState.LOADING
    market.advance(START + 2 * MINUTE)
    assert state(market, held) is InstanceState.RUNNING
    assert at_once(market.logs(held, 1)) == ()
    market.advance(START + 33 * MINUTE)
    assert at_once(market.logs(held, 1)) == ("hours done: 0.500000000",)
    market.advance(START + 90 * MINUTE)
    assert market.job.done_at == START + 63 * MINUTE


def test_capacity_that_goes_pauses_and_what_comes_back_starts_again_from_the_last_checkpoint() -> None:
    market = exchange((1, 1, 0, 1))
    held = rented(market, bid="1.00")
    market.advance(START + 20 * MINUTE)
    assert state(market, held) is InstanceState.PAUSED
    assert [event.kind for event in at_once(market.events(START))] == ["outbid"]
    assert [row.floor for row in offers(market)] == [None, None]
    market.advance(START + 34 * MINUTE)
    assert state(market, held) is InstanceState.RUNNING
    assert at_once(market.logs(held, 1)) == (f"hours done: {1 / 6 + 1 / 60:.9f}",)


def test_on_demand_is_never_taken_away() -> None:
    market = exchange((1, 0, 0))
    held = rented(market)
    market.advance(START + 30 * MINUTE)
    assert state(market, held) is InstanceState.RUNNING


def test_money_is_the_rate_from_the_rent_on_and_nothing_while_paused() -> None:
    market = exchange((1, 1, 1, 0))
    rented(market, bid="1.20")
    market.advance(START + 60 * MINUTE)
    assert market.dollars == pytest.approx(0.6)


def test_what_cannot_be_rented_is_refused() -> None:
    market = exchange((0,))
    with pytest.raises(market_errors.Rejected):
        rented(market, bid="1.00")
    (first, *_) = offers(market)
    rented(market)
    with pytest.raises(market_errors.Rejected):
        at_once(market.rent(first, port.Terms(Tenure.ON_DEMAND, None, 10.0, "image"), "label"))
    with pytest.raises(market_errors.NotFound):
        at_once(market.instance("none"))


def test_a_pause_is_kept_until_it_is_resumed_and_a_release_frees_the_host() -> None:
    market = exchange()
    held = rented(market, bid="1.00")
    at_once(market.pause(held))
    market.advance(START + 30 * MINUTE)
    assert state(market, held) is InstanceState.PAUSED
    assert at_once(market.resume(held))
    assert len(offers(market)) == 2
    at_once(market.release(held))
    at_once(market.release(held))
    assert len(offers(market)) == 3
    assert at_once(market.instances()) == []


def test_a_call_that_waits_is_no_call_to_a_market_in_memory() -> None:
    class Once:
        def __await__(self) -> Any:
            yield

    async def waits() -> None:
        await Once()

    with pytest.raises(Waits):
        at_once(waits())


@given(st.integers(0, 1000), st.lists(st.integers(1, 3000), min_size=1, max_size=12))
def test_steps_of_any_size_end_in_the_same_world(seed: int, seconds: list[int]) -> None:
    course = drawn(str(seed), START, 12.0)
    worlds, dollars = [], []
    for steps in (seconds, [sum(seconds)]):
        market = Exchange(Pool(course, GPU), str(seed), START, Job(2.0, 10 * MINUTE, MINUTE))
        rented(market)
        if course.capacity(START):
            rented(market, bid="0.9731")
        for step in steps:
            market.advance(market.now + timedelta(seconds=step))
        states = [row.state for row in at_once(market.instances())]
        worlds.append((market.job.done_at, market.losses, market.starts, states))
        dollars.append(market.dollars)
    assert worlds[0] == worlds[1]
    assert dollars[0] == pytest.approx(dollars[1], abs=0.001)


@given(st.integers(0, 10_000))
def test_a_course_is_its_seed_s(seed: int) -> None:
    assert drawn(f"{seed}", START, 5.0) == drawn(f"{seed}", START, 5.0)


def test_delays_are_bounded_and_the_same_for_whoever_starts_there() -> None:
    delays = Delays(median=600.0, spread=2.0, longest=900.0)
    found = [delays.draw("s", f"h{number}", 0) for number in range(200)]
    assert found == [delays.draw("s", f"h{number}", 0) for number in range(200)]
    assert max(found) == timedelta(seconds=900)
    assert len(set(found)) > 50


def test_lomax_spells_have_their_median() -> None:
    import random

    lots, spells = random.Random(1), Spells(1.0, 0.5)
    found = sorted(spells.draw(lots) for _ in range(2001))
    assert found[1000] == pytest.approx(0.5, rel=0.1)
