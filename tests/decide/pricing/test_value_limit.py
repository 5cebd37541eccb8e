"""The limit of a bid where the price paid is not the bid: the value of the hour, whatever the rivals bid."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import offer_refusal, offer_terms, ranking, value_limit
from agent.decide.strategy import Candidate, Pricing
from agent.domain.market.offer import Offer
from agent.domain.money import UsdPerHour
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support import builders, second_price

micros = st.integers(1, 5_000_000)


def bids(work: Workload) -> offer_terms.Bids:
    plain = offer_terms.Bids(work.prices, work.disk_gb, headroom=0.1, ceiling=0.9)
    return plain.under(second_price.LIMITS, work.value_per_hour)


def candidates(work: Workload, *offers: Offer, pricing: Pricing | None = None) -> list[Candidate]:
    book, taken = offer_refusal.OrderedOffers(offers), offer_refusal.Unavailable()
    judged = ranking.Judged({})
    return list(ranking.ranking(book, work, pricing or bids(work), judged, taken, builders.NOW, 0.15))


def limit_of(work: Workload, offer: Offer) -> UsdPerHour:
    (found,) = candidates(work, offer)
    assert found.way.limit is not None
    return found.way.limit


@given(
    value=st.none() | micros,
    most=micros,
    floor=micros,
    storage=st.integers(0, 10**7),
    minutes=st.integers(1, 600),
    place=st.sampled_from(CheckpointPlace),
)
def test_a_limit_is_never_above_the_value_nor_with_the_disk_above_the_highest_price(
    value: int | None, most: int, floor: int, storage: int, minutes: int, place: CheckpointPlace
) -> None:
    work = builders.workload(
        max_price=UsdPerHour(most),
        value_per_hour=None if value is None else UsdPerHour(value),
        checkpoint=Checkpoint(interval=timedelta(minutes=minutes), place=place),
    )
    offer = second_price.pool(floor=UsdPerHour(floor), price_paid=None, storage_micros_per_gb_month=storage)
    for found in candidates(work, offer):
        assert found.way.limit is not None
        assert found.way.limit <= work.value_of(offer.gpu)
        assert found.way.limit + offer.disk_rate(work.disk_gb) <= work.max_price
        assert UsdPerHour(floor) == found.way.rate <= found.way.limit
        assert found.way.limit.micros % 10_000 == 0, "auctions keep whole cents: another limit is never read back"


@given(
    value=st.integers(1, 100),
    rivals=st.lists(st.integers(1, 100), min_size=1, max_size=12),
    capacity=st.integers(1, 4),
    other=st.integers(0, 200),
)
def test_no_other_bid_is_ever_better_than_the_value(value: int, rivals: list[int], capacity: int, other: int) -> None:
    """A uniform auction: the highest bids win and pay the highest losing one; our own bid is one unit."""

    def gained(bid: int) -> int:
        beaten_by = sorted((rival for rival in rivals if rival >= bid), reverse=True)
        if len(beaten_by) >= capacity:
            return 0
        losing = sorted([*rivals, bid], reverse=True)[capacity:]
        return value - (losing[0] if losing else 0)

    assert gained(value) >= gained(other)


def test_the_limit_does_not_step_over_the_floor_but_is_what_the_hour_is_worth() -> None:
    work, cheap, dear = builders.workload(), second_price.pool(), second_price.pool(floor=builders.per_hour("0.60"))
    (found,) = candidates(work, cheap)
    assert (found.way.rate, found.way.bid) == (cheap.floor, limit_of(work, cheap))
    assert 0.9 <= limit_of(work, cheap).dollars <= 1.0
    assert limit_of(work, dear).dollars == pytest.approx(limit_of(work, cheap).dollars, rel=0.05)
    assert found.reckoning.gpu_dollars == pytest.approx(0.20 * 24, rel=0.5)


def test_an_hour_on_which_more_is_lost_is_worth_less() -> None:
    saves = builders.workload(checkpoint=Checkpoint(interval=timedelta(minutes=5), place=CheckpointPlace.REMOTE))
    loses = replace(saves, checkpoint=Checkpoint(place=CheckpointPlace.NONE))
    slow = replace(saves, checkpoint=replace(saves.checkpoint, restore=timedelta(hours=3)))
    offer = second_price.pool()
    assert limit_of(loses, offer) < limit_of(saves, offer)
    assert limit_of(slow, offer) < limit_of(saves, offer)
    dear_disk = second_price.pool(storage_micros_per_gb_month=15_000_000)
    assert limit_of(saves, dear_disk) < limit_of(saves, offer)


def test_a_pool_that_costs_more_than_the_hour_is_worth_is_no_candidate() -> None:
    offer = second_price.pool(floor=builders.per_hour("0.50"))
    work = builders.workload(max_price=builders.per_hour("2.00"), value_per_hour=builders.per_hour("0.45"))
    assert candidates(work, offer) == []
    assert len(candidates(replace(work, value_per_hour=None), offer)) == 1


def test_a_pool_of_unknown_price_is_no_candidate_but_may_be_waited_for() -> None:
    offer, work = second_price.unknown(), builders.workload()
    assert candidates(work, offer) == []
    (found,) = candidates(work, offer, pricing=offer_terms.WaitingBids(bids(work)))
    assert found.way.rate == found.way.limit == found.way.bid
    assert candidates(work, second_price.pool(), pricing=offer_terms.WaitingBids(bids(work))) == []


def test_a_pool_that_only_a_bid_above_the_limit_wins_may_be_waited_for() -> None:
    work = builders.workload()
    limit = limit_of(work, second_price.pool())
    for floor in (limit + value_limit.CENT, builders.per_hour("9.00")):
        dear = second_price.pool(floor=floor)
        assert candidates(work, dear) == []
        (found,) = candidates(work, dear, pricing=offer_terms.WaitingBids(bids(work)))
        assert found.way.is_waiting
        assert found.way.rate == found.way.bid < floor


def test_a_lease_is_worth_what_a_new_one_would_be_without_its_loading() -> None:
    work = builders.workload()
    here = value_limit.of_lease(second_price.lease(), work, work.max_price, work.max_price, 0.04)
    assert limit_of(work, second_price.pool()).dollars == pytest.approx(here.dollars, rel=0.05)
    assert here + second_price.lease().disk_rate <= work.max_price
