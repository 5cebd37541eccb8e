"""patient: bids low, waits out spikes, pays more only where it costs less than waiting."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import bidding, ranking
from agent.decide.pricing.offer_refusal import OrderedOffers, Unavailable
from agent.decide.strategy import NEVER, Candidate, Down, Params, Pricing, Proposal, SlotView, View
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.workload import Workload
from strategies.patient import Patient, PatientParams
from tests.support import builders

NOW = builders.NOW
PLACE = builders.slot()


def view(*slots: SlotView, offers: Sequence[Offer] = (), work: Workload | None = None, has_offers: bool = True) -> View:
    """Build the view of the strategy."""
    work = work or builders.workload(slots=len(slots))

    def ranked(pricing: Pricing) -> Iterator[Candidate]:
        return ranking.ranking(OrderedOffers(offers), work, pricing, ranking.Judged({}), Unavailable(), NOW, 0.15)

    return View(work, slots, NOW, has_offers, ranked, 0.15)


def proposed(*slots: SlotView, offers: Sequence[Offer] = (), **params: Any) -> Sequence[Proposal]:
    numbers = {key: params.pop(key) for key in ("work", "has_offers") if key in params}
    return Patient().propose(view(*slots, offers=offers, **numbers), PatientParams(**params))


def only(*slots: SlotView, **changes: Any) -> Proposal:
    (made,) = proposed(*slots, **changes)
    return made


def down(held: Lease, *quotes: str) -> SlotView:
    return SlotView(held.slot, held, None, Down(held.state_since, tuple(builders.per_hour(quote) for quote in quotes)))


EMPTY = SlotView(PLACE, None)
LOST = builders.lease(state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, state_since=builders.ago(minutes=5))


@pytest.mark.parametrize("state", [LeaseState.STARTING, LeaseState.RUNNING])
def test_a_lease_that_is_kept_is_said_to_be_in_its_state(state: LeaseState) -> None:
    held = builders.lease(state=state)
    made = only(SlotView(builders.slot(), held))
    assert (made.kind, made.reason.code) == (None, state.value)
    assert made.reason.sentence.startswith(f"{state.value} at ")


def test_an_empty_slot_bids_no_more_than_the_floor_plus_headroom() -> None:
    made = only(EMPTY, offers=[builders.offer()], headroom=0.2)
    assert made.kind is IntentKind.RENT
    assert made.candidate is not None
    assert made.candidate.way.tenure is Tenure.INTERRUPTIBLE
    assert builders.per_hour("0.20") <= made.candidate.way.rate <= builders.per_hour("0.24")


@pytest.mark.parametrize(("has_offers", "code"), [(True, "no_offer"), (False, "no_view")])
def test_without_an_offer_it_says_which_kind_of_nothing(has_offers: bool, code: str) -> None:
    assert only(EMPTY, has_offers=has_offers).reason.code == code


def test_where_the_floor_is_above_the_ask_it_rents_on_demand() -> None:
    odd = builders.offer(floor=builders.per_hour("0.50"), ask=builders.per_hour("0.40"))
    made = only(EMPTY, offers=[odd])
    assert made.candidate is not None
    assert made.candidate.way.tenure is Tenure.ON_DEMAND
    assert only(EMPTY, offers=[odd], on_demand_if_cheaper=False).reason.code == "no_offer"


def test_slots_take_different_candidates_and_a_slot_that_waits_takes_none() -> None:
    offers = [builders.offer(1), builders.offer(2), builders.offer(3)]
    waits = down(builders.lease(slot=builders.slot("train", 7), state=LeaseState.PAUSED, state_since=NOW))
    made = proposed(
        waits, EMPTY, SlotView(builders.slot("train", 1), None), offers=offers, may_raise=False, least_gain=1.0
    )
    rents = [one for one in made if one.kind is IntentKind.RENT]
    taken = [one.candidate.offer.offer_id for one in rents if one.candidate is not None]
    assert taken == ["a1", "a2"]


def test_a_lost_lease_is_raised_or_left_within_what_the_numbers_allow() -> None:
    assert only(down(LOST, "0.25")).kind is IntentKind.REBID
    assert only(down(LOST, "0.25"), may_raise=False).kind is None
    stale = builders.lease(state=LeaseState.PAUSED, interrupted_by=Cause.DISPLACED, state_since=builders.ago(hours=1))
    assert only(down(stale), offers=[builders.offer(2)]).kind is IntentKind.PAUSE
    assert only(down(stale), offers=[builders.offer(2)], may_move=False).kind is None


def test_an_hour_that_is_worth_more_is_bought_back_at_a_price_that_a_cheap_hour_is_not() -> None:
    slot, cheap = down(LOST, "0.30"), builders.workload(max_price=builders.per_hour("0.40"))
    dear = replace(cheap, value_per_hour=builders.per_hour("4.00"))
    waits, raised = (only(slot, work=work, ceiling=1.0, least_gain=0.3) for work in (cheap, dear))
    assert waits.kind is None
    assert raised.kind is IntentKind.REBID
    assert raised.bid is not None
    assert raised.bid <= builders.per_hour("0.40")


def test_while_a_new_lease_arrives_it_waits() -> None:
    arriving = builders.lease(2, state=LeaseState.STARTING)
    made = only(SlotView(PLACE, LOST, arriving, Down(LOST.state_since)), offers=[builders.offer(3)])
    assert (made.kind, made.reason.code) == (None, "moving")


RAISED = builders.lease(
    gpu_rate=builders.per_hour("0.30"), rival_floor=builders.per_hour("0.28"), bid_since=builders.ago(hours=2)
)


def test_a_raised_bid_is_lowered_after_calm() -> None:
    made = only(SlotView(PLACE, RAISED))
    assert (made.kind, made.reason.code) == (IntentKind.REBID, "lower_bid")
    assert made.bid == builders.per_hour("0.26")
    assert only(SlotView(PLACE, RAISED), lower_step=1.0).bid == builders.per_hour("0.22")


@pytest.mark.parametrize(
    ("changes", "params"),
    [
        ({"bid_since": builders.ago(minutes=44)}, {}),
        ({"state_since": builders.ago(minutes=44)}, {}),
        ({"rival_floor": None}, {}),
        ({"host_floor": None}, {}),
        ({"tenure": Tenure.ON_DEMAND}, {}),
        ({"state": LeaseState.STARTING}, {}),
        ({"gpu_rate": builders.per_hour("0.2205")}, {}),
        ({"host_floor": builders.per_hour("0.50")}, {}),
        ({}, {"lower_after": NEVER}),
    ],
    ids=str,
)
def test_what_is_not_calm_or_not_raised_keeps_its_bid(changes: dict[str, Any], params: dict[str, Any]) -> None:
    values = {"gpu_rate": RAISED.gpu_rate, "rival_floor": RAISED.rival_floor, "bid_since": RAISED.bid_since, **changes}
    held = builders.lease(**values)
    made = only(SlotView(PLACE, held), **params)
    assert (made.kind, made.reason.code) == (None, held.state.value)


rates = st.builds(UsdPerHour, st.integers(1_000, 900_000))


@given(rates, rates, rates, st.floats(0, 1), st.floats(0, 2))
def test_lowering_never_goes_below_the_aim_nor_up(
    rate: UsdPerHour, floor: UsdPerHour, rival: UsdPerHour, step: float, headroom: float
) -> None:
    held = builders.lease(
        gpu_rate=bidding.rounded(rate), host_floor=floor, rival_floor=rival, bid_since=builders.ago(hours=9)
    )
    made = only(SlotView(PLACE, held), lower_step=step, headroom=headroom)
    if made.bid is not None:
        assert held.host_floor is not None
        aim = bidding.opening(held.host_floor, headroom, held.gpu_rate)
        assert aim is not None
        assert aim <= made.bid < held.gpu_rate


offers = st.lists(
    st.builds(
        builders.offer,
        st.integers(0, 99),
        floor=st.none() | rates,
        ask=st.none() | rates,
        reliability=st.floats(0.5, 1),
    ),
    max_size=8,
)


@given(offers, st.floats(0, 4), st.floats(0.01, 1), rates)
def test_no_bid_is_above_the_ceiling_whatever_the_market_asks(
    many: list[Offer], headroom: float, ceiling: float, price: UsdPerHour
) -> None:
    work = builders.workload(max_price=price)
    made = only(EMPTY, offers=many, work=work, headroom=headroom, ceiling=ceiling)
    if made.candidate is None:
        return
    way, offer = made.candidate.way, made.candidate.offer
    assert way.rate + offer.disk_rate(work.disk_gb) <= price
    if way.tenure is Tenure.INTERRUPTIBLE:
        assert offer.floor is not None
        assert way.rate >= offer.floor
        assert offer.ask is None or way.rate.micros <= offer.ask.micros * ceiling


@given(st.lists(rates, min_size=1, max_size=20), st.floats(0.1, 1))
def test_a_market_that_echoes_every_bid_cannot_run_away_with_it(rivals: list[UsdPerHour], ceiling: float) -> None:
    """The slice is quoted at our own bid after every raise; the bid stays under the ceiling and stops rising."""
    held = LOST
    raises = 0
    for rival in [*rivals, *[None] * 20]:
        quotes = [held.gpu_rate] if rival is None else [rival, held.gpu_rate]
        slot = SlotView(PLACE, held, None, Down(held.state_since, tuple(quotes)))
        made = only(slot, ceiling=ceiling)
        if made.bid is None:
            continue
        assert rival is not None
        raises += 1
        assert held.gpu_rate < made.bid
        assert held.ask is not None
        assert made.bid.micros <= held.ask.micros * ceiling
        held = builders.lease(
            state=LeaseState.PAUSED,
            interrupted_by=Cause.OUTBID,
            state_since=builders.ago(minutes=5),
            gpu_rate=made.bid,
            recent_bids=(held.gpu_rate, *held.recent_bids)[:6],
        )
    assert raises <= len(rivals)


def test_other_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="PatientParams"):
        Patient().propose(view(EMPTY), Params())


def test_a_calm_bid_is_not_lowered_by_a_hair() -> None:
    held = builders.lease(
        gpu_rate=builders.per_hour("0.2265"), rival_floor=builders.per_hour("0.21"), bid_since=NOW - timedelta(days=1)
    )
    assert only(SlotView(PLACE, held)).kind is None


def test_an_on_demand_lease_is_left_for_a_much_cheaper_offer() -> None:
    held = builders.lease(
        tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.80"), state_since=builders.ago(hours=5)
    )
    made = only(SlotView(PLACE, held), offers=[builders.offer(2)], return_after=timedelta(hours=4))
    assert made.kind is IntentKind.RENT
    for params in ({"may_return": False}, {"return_after": timedelta(hours=6)}):
        assert only(SlotView(PLACE, held), offers=[builders.offer(2)], **params).kind is None
