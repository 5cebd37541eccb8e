"""Recorded prices become the prices a job would meet."""

from datetime import UTC, datetime, timedelta

import msgspec

from agent.decide.estimate import past_runs
from agent.domain import money
from agent.domain.market import gpu
from agent.domain.market.market_rules import PricePaid
from agent.domain.market.price import PriceHour, PriceSample, PriceSpan
from tests.support.builders import lease

NOON = datetime(2026, 7, 27, 12, tzinfo=UTC)
MODEL = gpu.model("RTX 4090")


def seen(hours: float, host: str, ask: float | None, floor: float | None = None, gpus: int = 1) -> PriceSample:
    rates = [None if rate is None else money.per_hour(rate) for rate in (ask, floor)]
    return PriceSample(NOON + timedelta(hours=hours), "vast", host, MODEL, gpus, rates[0], rates[1])


def dollars(hourly: past_runs.Hourly) -> list[float]:
    return [prices[0].dollars for prices in hourly.values()]


def test_the_cheapest_host_of_every_hour_counts_and_a_price_stands_until_it_changes() -> None:
    samples = [seen(0, "a", 0.5), seen(1.5, "b", 0.4), seen(3, "b", 0.6), seen(4, "a", 0.3)]
    assert dollars(past_runs.asks(samples, [], 1)) == [0.5, 0.4, 0.4, 0.5, 0.3]


def test_a_price_nobody_has_repeated_for_a_day_is_not_believed() -> None:
    samples = [seen(0, "a", 0.1), seen(30, "b", 0.6)]
    hourly = past_runs.asks(samples, [], 1)
    assert len(hourly) == 25
    assert dollars(hourly)[-1] == 0.6


def test_other_sizes_and_unknown_prices_do_not_count() -> None:
    samples = [seen(0, "a", 0.5, None), seen(0, "b", 0.1, 0.05, gpus=8)]
    assert dollars(past_runs.floors(samples, [], 1, PricePaid.BID)) == []
    assert dollars(past_runs.asks(samples, [], 8)) == [0.1]


def test_rolled_up_hours_come_before_the_raw_ones() -> None:
    span = PriceSpan(4, money.per_hour(0.2), money.per_hour(0.3), money.per_hour(0.4))
    old = PriceHour(NOON - timedelta(days=20), "vast", MODEL, 1, span, None)
    assert dollars(past_runs.asks([seen(0, "a", 0.5)], [old], 1)) == [0.2, 0.5]


def test_cases_are_cells_of_equal_length_with_the_mean_of_the_whole() -> None:
    hourly = {NOON + timedelta(hours=hour): (money.per_hour(hour + 1),) for hour in range(10)}
    found = [rate.dollars for rate in past_runs.cases(hourly)]
    assert found == [1.5, 3.5, 5.5, 7.5, 9.5]
    assert past_runs.cases({}) == ()
    assert [rate.dollars for rate in past_runs.cases(dict(list(hourly.items())[:2]))] == [1.0, 2.0]


def test_the_few_cheapest_of_an_hour_count_alike() -> None:
    hourly = past_runs.asks([seen(0, host, ask) for host, ask in zip("abcd", (0.4, 0.1, 0.3, 0.2), strict=True)], [], 1)
    assert [rate.dollars for rate in hourly[NOON]] == [0.1, 0.2]
    assert [rate.dollars for rate in past_runs.cases(hourly)] == [0.1, 0.2]


def test_our_own_bid_that_a_search_shows_as_the_floor_is_no_price() -> None:
    samples = [seen(0, "a", None, 0.1), seen(0, "b", None, 0.2), seen(2, "a", None, 0.11), seen(9, "a", None, 0.15)]
    held = lease(host_id="a", opened_at=NOON + timedelta(hours=1, minutes=5), ended_at=NOON + timedelta(hours=6))
    assert dollars(past_runs.floors(samples, [held], 1, PricePaid.BID)) == [0.1, 0.1] + [0.2] * 7 + [0.15]
    still = msgspec.structs.replace(held, ended_at=None)
    assert dollars(past_runs.floors(samples, [still], 1, PricePaid.BID)) == [0.1, 0.1, 0.2]


def test_where_prices_are_listed_a_lease_of_ours_shows_nothing() -> None:
    samples = [seen(0, "pool/aws/spot", None, 0.1), seen(2, "pool/aws/spot", None, 0.11)]
    held = lease(host_id="pool/aws/spot", opened_at=NOON - timedelta(hours=1), ended_at=None)
    assert dollars(past_runs.floors(samples, [held], 1, PricePaid.LISTED)) == [0.1, 0.1, 0.11]
    assert dollars(past_runs.floors(samples, [held], 1, PricePaid.BID)) == []
