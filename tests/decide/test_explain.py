"""A plan explained: the choice, the next best candidates, and why other offers were refused."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from agent.decide.moves import cooldowns_after_writes
from agent.decide.pricing import offer_refusal
from agent.domain.fleet import Fleet
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.tally import Tally
from agent.domain.work.decision import (
    Decision,
    Hold,
    Option,
    Pause,
    Reason,
    Rebid,
    Release,
    Rent,
    Resume,
    Term,
    slot_of,
)
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
TERMS = (Term("gpu", 0.44444444, "$"), Term("useful", 1.9, "h"))
WHY = Reason("raise_bid", "raise the bid", (Option("wait", 1.23456789, TERMS),))
HELD = builders.lease()
RENT = Rent(
    builders.slot(), builders.offer(), Tenure.INTERRUPTIBLE, builders.per_hour("0.22"), builders.per_hour("0.224"), WHY
)


def explained(fleet: Fleet) -> explain.Explanation:
    return explain.explain(fleet, plan.plan(fleet, TUNED, Limits()), fleet.workloads[0])


def market(*offers: Offer) -> dict[str, Any]:
    return {"vast": builders.view(offers=offers)}


def test_the_rented_offer_stands_first_and_the_next_best_after_it() -> None:
    offers = [builders.offer(number, floor=builders.per_hour(f"0.2{number}")) for number in range(9)]
    told = explained(builders.fleet(markets=market(*offers)))
    (decision,) = told.decisions
    assert isinstance(decision, Rent)
    assert [found.offer.offer_id for found in told.candidates] == ["a0", "a1", "a2", "a3", "a4"]
    assert decision.offer is told.candidates[0].offer
    assert told.offers == 9
    costs = [found.reckoning.per_useful for found in told.candidates]
    assert costs == sorted(costs)


def test_candidates_stand_on_different_hosts() -> None:
    siblings = [builders.offer(number, host_id="h1") for number in range(3)]
    assert len(explained(builders.fleet(markets=market(*siblings))).candidates) == 1


def test_every_offer_is_a_candidate_or_refused_for_a_reason() -> None:
    offers = (
        builders.offer(1),
        builders.offer(2, gpus=2),
        builders.offer(3, is_verified=False),
        builders.offer(4, floor=builders.per_hour(5), ask=builders.per_hour(6)),
        builders.offer(5),
    )
    told = explained(builders.fleet(markets=market(*offers), leases=(builders.lease(5),)))
    assert {refused.offer.offer_id: refused.why.code for refused in told.refused} == {
        "a2": "gpus",
        "a3": "verified",
        "a4": "price",
        "a5": "host_held",
    }
    assert [found.offer.offer_id for found in told.candidates] == ["a1"]


def test_only_the_workloads_own_decisions_are_told() -> None:
    works = (builders.workload("train"), builders.workload("other"))
    told = explained(builders.fleet(workloads=works, markets=market(builders.offer(1), builders.offer(2))))
    assert [slot_of(decision).workload for decision in told.decisions] == ["train"]


def test_a_market_nobody_asked_explains_itself() -> None:
    told = explained(builders.fleet(markets={}))
    assert (told.candidates, told.refused, told.offers) == ((), (), 0)


@given(st.lists(st.builds(builders.offer, st.integers(0, 30), gpus=st.integers(1, 2), is_verified=st.booleans())))
def test_what_is_refused_is_what_the_plan_may_not_rent(offers: list[Offer]) -> None:
    fleet = builders.fleet(markets=market(*offers))
    told = explained(fleet)
    for refused in told.refused:
        assert (
            offer_refusal.refusal(refused.offer, fleet.workloads[0], fleet.now, offer_refusal.Unavailable())
            == refused.why
        )
    for found in told.candidates:
        assert offer_refusal.refusal(found.offer, fleet.workloads[0], fleet.now, offer_refusal.Unavailable()) is None


DECISIONS: list[tuple[Decision, dict[str, Any]]] = [
    (RENT, {"kind": "rent", "offer": "a1", "host": "h1", "tenure": "interruptible", "bid_dollars_per_hour": 0.22}),
    (replace(RENT, tenure=Tenure.ON_DEMAND, bid=None), {"tenure": "on_demand", "bid_dollars_per_hour": None}),
    (Rebid(HELD, builders.per_hour("0.3"), WHY), {"kind": "rebid", "lease": "vast-1", "bid_dollars_per_hour": 0.3}),
    (Resume(HELD, WHY), {"kind": "resume", "lease": "vast-1", "host": "h1"}),
    (Pause(HELD, WHY), {"kind": "pause"}),
    (Release(HELD, WHY), {"kind": "release"}),
    (Hold(builders.slot(), WHY), {"kind": "hold", "limit": None}),
]


@pytest.mark.parametrize(("decision", "expected"), DECISIONS, ids=str)
def test_a_decision_is_plain_json(decision: Decision, expected: dict[str, Any]) -> None:
    told = json.loads(json.dumps(explain.as_json(decision)))
    assert told | expected == told
    assert (told["slot"], told["code"]) == ("train/0", "raise_bid")
    (option,) = told["options"]
    assert (option["name"], option["dollars"]) == ("wait", 1.234568)
    assert option["terms"][0] == {"name": "gpu", "figure": 0.444444, "unit": "$"}


@pytest.mark.parametrize(("decision", "expected"), DECISIONS, ids=str)
def test_a_decision_is_one_line(decision: Decision, expected: dict[str, Any]) -> None:
    line = explain.sentence(decision)
    assert line.startswith(f"train/0: {expected.get('kind', 'rent')}, raise_bid: raise the bid")
    assert "\n" not in line


def test_a_veto_names_its_limit() -> None:
    struck = Hold(builders.slot(), replace(WHY, code="limit", limit="per_day"))
    assert "limit (limit per_day)" in explain.sentence(struck)
    assert explain.as_json(struck)["limit"] == "per_day"


def test_an_explanation_is_plain_json() -> None:
    offers = (builders.offer(1), builders.offer(2, ask=None), builders.offer(3, gpus=2, floor=None))
    told = json.loads(json.dumps(explain.explanation_json(explained(builders.fleet(markets=market(*offers))))))
    assert told["workload"] == "train"
    assert told["offers_seen"] == 3
    assert [row["offer"] for row in told["candidates"]] == ["a1", "a2"]
    assert told["candidates"][0]["score_dlperf_hours_per_dollar"] > 0
    assert {term["name"] for term in told["candidates"][0]["terms"]} >= {"gpu", "disk", "score"}
    assert len(told["refused"]) == 1


def test_a_refused_bid_is_told_and_not_repeated() -> None:
    offer = builders.offer(1, floor=builders.per_hour("0.2"), ask=None)
    (first,) = explained(builders.fleet(markets=market(offer))).decisions
    assert isinstance(first, Rent)
    assert first.bid == builders.per_hour("0.2")
    made = cooldowns_after_writes.after_refusal(first, "bid_too_low", (), builders.ago(minutes=30))
    tallies = tuple(rest for rest in made if isinstance(rest, Tally))
    told = explained(builders.fleet(markets=market(offer), tallies=tallies))
    (again,) = told.decisions
    assert isinstance(again, Rent)
    assert again.bid is not None
    assert again.bid > first.bid
    assert not told.candidates
    (refused,) = told.refused
    assert refused.why.code == "bid_refused"
    assert "a bid of $0.2000/h was refused" in refused.why.sentence
