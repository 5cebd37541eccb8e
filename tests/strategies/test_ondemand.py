"""ondemand: the listed price or nothing."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import pytest

from agent.decide.pricing import ranking
from agent.decide.pricing.offer_refusal import OrderedOffers, Unavailable
from agent.decide.strategy import Candidate, Down, Params, Pricing, Proposal, SlotView, View
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from strategies.ondemand import OnDemand, OnDemandParams
from tests.support import builders

EMPTY = SlotView(builders.slot(), None)


def proposed(
    *slots: SlotView, offers: Sequence[Offer] = (), params: Params | None = None, has_offers: bool = True
) -> Sequence[Proposal]:
    work = builders.workload(max_price=builders.per_hour("0.50"))

    def ranked(pricing: Pricing) -> Iterator[Candidate]:
        return ranking.ranking(
            OrderedOffers(offers), work, pricing, ranking.Judged({}), Unavailable(), builders.NOW, 0.15
        )

    return OnDemand().propose(View(work, slots, builders.NOW, has_offers, ranked, 0.15), params or OnDemandParams())


def test_an_empty_slot_rents_the_cheapest_useful_hour_at_its_ask() -> None:
    dear = builders.offer(1, ask=builders.per_hour("0.45"))
    (made,) = proposed(EMPTY, offers=[dear, builders.offer(2)])
    assert made.kind is IntentKind.RENT
    assert made.candidate is not None
    assert (made.candidate.offer.offer_id, made.candidate.way.tenure) == ("a2", Tenure.ON_DEMAND)
    assert made.candidate.way.rate == builders.per_hour("0.40")


def test_each_slot_gets_another_offer() -> None:
    made = proposed(EMPTY, EMPTY, EMPTY, offers=[builders.offer(1), builders.offer(2)])
    assert [one.kind for one in made] == [IntentKind.RENT, IntentKind.RENT, None]
    assert {one.candidate.offer.offer_id for one in made if one.candidate} == {"a1", "a2"}


def test_disk_counts_towards_the_price() -> None:
    disk = builders.offer().disk_rate(20.0)
    most = builders.per_hour("0.50") - disk
    assert proposed(EMPTY, offers=[builders.offer(ask=most)])[0].kind is IntentKind.RENT
    over = builders.offer(ask=most + builders.per_hour("0.000001"))
    assert proposed(EMPTY, offers=[over])[0].kind is None


def test_a_share_of_the_price_waits_for_cheaper_hosts() -> None:
    assert proposed(EMPTY, offers=[builders.offer()], params=OnDemandParams(ceiling=0.5))[0].kind is None


@pytest.mark.parametrize(("has_offers", "code"), [(True, "no_offer"), (False, "no_view")])
def test_without_an_offer_it_says_which_kind_of_nothing(has_offers: bool, code: str) -> None:
    (made,) = proposed(EMPTY, offers=[builders.offer(ask=None)], has_offers=has_offers)
    assert made.reason.code == code


@pytest.mark.parametrize("state", [state for state in LeaseState if state is not LeaseState.PAUSED])
def test_what_is_held_is_kept(state: LeaseState) -> None:
    held = builders.lease(state=state, tenure=Tenure.ON_DEMAND)
    (made,) = proposed(SlotView(builders.slot(), held))
    assert made.kind is None
    assert (made.reason.code, made.reason.sentence) == (state.value, f"{state.value} on demand")


def test_what_stopped_is_started_again() -> None:
    held = builders.lease(state=LeaseState.PAUSED, tenure=Tenure.ON_DEMAND)
    (made,) = proposed(SlotView(builders.slot(), held))
    assert (made.kind, made.lease) == (IntentKind.RESUME, held)


@pytest.mark.parametrize("ends_at", [None, builders.NOW])
def test_what_stopped_is_not_started_beside_the_lease_that_it_moves_to(ends_at: datetime | None) -> None:
    """The refusal of its start counts for a quarter of an hour, and a load may take longer: then both billed."""
    held = builders.lease(state=LeaseState.PAUSED, tenure=Tenure.ON_DEMAND, ends_at=ends_at)
    arriving = builders.lease(2, state=LeaseState.STARTING, tenure=Tenure.ON_DEMAND)
    for down in (Down(builders.ago(minutes=20)), Down(builders.ago(minutes=5), refused=frozenset({"resume"}))):
        (made,) = proposed(SlotView(builders.slot(), held, arriving, down), offers=[builders.offer(3)])
        assert (made.kind, made.reason.code) == (None, "moving")


@pytest.mark.parametrize("cause", [Cause.EXTERNAL_STOP, Cause.CONTAINER_EXIT], ids=lambda cause: cause.value)
def test_what_a_person_or_the_work_ended_is_left_so_for_ten_minutes(cause: Cause) -> None:
    held = builders.lease(state=LeaseState.PAUSED, tenure=Tenure.ON_DEMAND, interrupted_by=cause)
    (left,) = proposed(SlotView(builders.slot(), held, down=Down(builders.ago(seconds=599))))
    assert (left.kind, left.reason.code) == (None, "cool_off")
    assert "it stays so for 10 min; `gpubid pause train/0` keeps it stopped" in left.reason.sentence
    (again,) = proposed(SlotView(builders.slot(), held, down=Down(builders.ago(seconds=600))))
    assert (again.kind, again.lease) == (IntentKind.RESUME, held)


def test_other_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match="OnDemandParams"):
        proposed(EMPTY, params=Params())
