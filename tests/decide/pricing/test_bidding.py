"""Bids: never above the ceiling, never against our own echo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import bidding
from agent.domain.money import FREE, UsdPerHour
from tests.support import builders

rates = st.builds(UsdPerHour, st.integers(0, 5_000_000))
GRID = 100
"""Micro-dollars: bids have four decimals."""


@given(rates, st.floats(0, 4), rates)
def test_an_opening_bid_lies_between_floor_and_ceiling(floor: UsdPerHour, headroom: float, most: UsdPerHour) -> None:
    bid = bidding.opening(floor, headroom, most)
    if bid is None:
        assert floor.micros + GRID > most.micros
        return
    assert floor <= bid <= most
    assert bid.micros % GRID == 0
    wanted = floor.scaled(1 + headroom)
    assert bid >= wanted or bid == bidding.rounded(most)


@given(rates, rates, st.none() | rates, st.floats(0.01, 1))
def test_the_ceiling_holds_price_and_ask(
    max_price: UsdPerHour, disk: UsdPerHour, ask: UsdPerHour | None, share: float
) -> None:
    most = bidding.ceiling(max_price, disk, ask, share)
    assert FREE <= most <= max(max_price - disk, FREE)
    if ask is not None:
        assert most.micros <= ask.micros * share


def test_disk_dearer_than_the_price_leaves_nothing_to_bid() -> None:
    most = bidding.ceiling(builders.per_hour("0.10"), builders.per_hour("0.20"), None, 1.0)
    assert most == FREE
    assert bidding.opening(builders.per_hour("0.05"), 0.1, most) is None


@pytest.mark.parametrize(
    ("floor", "headroom", "most", "bid"),
    [
        ("0.2000", 0.1, "1.00", "0.2200"),
        ("0.20001", 0.0, "1.00", "0.2001"),
        ("0.2000", 0.5, "0.25", "0.2500"),
        ("0.2000", 0.5, "0.25009", "0.2500"),
        ("0.2000", 0.5, "0.20", "0.2000"),
        ("0.20001", 0.5, "0.20005", None),
        ("0.3000", 0.0, "0.2999", None),
    ],
)
def test_opening_bids(floor: str, headroom: float, most: str, bid: str | None) -> None:
    found = bidding.opening(builders.per_hour(floor), headroom, builders.per_hour(most))
    assert found == (None if bid is None else builders.per_hour(bid))


HELD = builders.lease(gpu_rate=builders.per_hour("0.2201"), recent_bids=(builders.per_hour("0.3000"),))


@pytest.mark.parametrize("quote", ["0.2201", "0.220", "0.2207", "0.2195", "0.300", "0.3006"])
def test_a_quote_near_one_of_our_bids_is_our_echo(quote: str) -> None:
    assert bidding.is_echo(HELD, builders.per_hour(quote))


@pytest.mark.parametrize("quote", ["0.2208", "0.2194", "0.25", "0.3007"])
def test_a_quote_off_our_bids_is_somebody_elses(quote: str) -> None:
    assert not bidding.is_echo(HELD, builders.per_hour(quote))


@given(rates)
def test_the_echo_of_a_bid_rounded_to_three_places_is_always_known(bid: UsdPerHour) -> None:
    held = builders.lease(gpu_rate=bidding.rounded(bid))
    for echoed in (held.gpu_rate.micros // 1000 * 1000, -(-held.gpu_rate.micros // 1000) * 1000):
        if abs(echoed - held.gpu_rate.micros) <= 500:
            assert bidding.is_echo(held, UsdPerHour(echoed))


def test_the_echo_trap_is_never_sprung() -> None:
    """Bidding against the floor of a slice we hold would raise our own bid for ever."""
    held = HELD
    for _ in range(20):
        beat = bidding.price_to_outbid(held, [held.gpu_rate])
        assert beat is None


@pytest.mark.parametrize(
    ("rival", "quotes", "beat"),
    [
        (None, [], None),
        (None, ["0.2201"], None),
        (None, ["0.25"], "0.25"),
        (None, ["0.28", "0.25", "0.220"], "0.25"),
        ("0.27", [], "0.27"),
        ("0.27", ["0.2201"], "0.27"),
        ("0.27", ["0.24"], "0.24"),
        ("0.27", ["0.35"], "0.27"),
    ],
    ids=str,
)
def test_what_must_be_beaten_is_the_least_that_others_pay(
    rival: str | None, quotes: list[str], beat: str | None
) -> None:
    held = builders.lease(
        gpu_rate=builders.per_hour("0.2201"), rival_floor=None if rival is None else builders.per_hour(rival)
    )
    found = bidding.price_to_outbid(held, [builders.per_hour(quote) for quote in quotes])
    assert found == (None if beat is None else builders.per_hour(beat))


@given(rates)
def test_rounding_down_takes_less_than_a_step(rate: UsdPerHour) -> None:
    down = bidding.rounded(rate)
    assert down <= rate
    assert rate.micros - down.micros < GRID


@given(st.floats(0, 4))
def test_a_ladder_leads_from_the_floor_to_all_the_headroom(most: float) -> None:
    rungs = bidding.ladder(most)
    assert rungs[0] == 0.0
    assert rungs[-1] == most
    assert list(rungs) == sorted(set(rungs))
