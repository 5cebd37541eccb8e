"""What each requirement leaves of a sample of offers, and which one to drop."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.pricing import funnel, offer_refusal
from agent.decide.pricing.funnel import Funnel, Relaxed
from agent.decide.strategy import Proposal
from agent.domain.fleet import Fleet
from agent.domain.market import gpu
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.work.decision import Reason
from agent.domain.work.workload import Workload
from tests.support import builders

AT = builders.ago(minutes=12)
WORK = builders.workload(
    max_price=builders.per_hour("0.25"),
    requirements=builders.requirements(min_reliability=0.95, min_inet_down_mbps=500.0),
)
CHANGES: list[dict[str, Any]] = [
    {},
    {"gpu": gpu.model("RTX 3090")},
    {"gpus": 2},
    {"reliability": 0.9},
    {"inet_down_mbps": 100.0},
    {"reliability": 0.9, "inet_down_mbps": 100.0},
    {"floor": builders.per_hour("0.31")},
    {"floor": None, "ask": None},
    {"ends_at": builders.NOW + timedelta(minutes=5)},
    {"is_verified": False},
]


def sampled(*rows: Offer, at: Any = AT) -> Fleet:
    view = msgspec.structs.replace(builders.view(), sample=rows, sampled_at=at)
    return builders.fleet(leases=(), markets={"vast": view})


def made(*rows: Offer, work: Workload = WORK) -> Funnel:
    found = funnel.of(sampled(*rows), work, offer_refusal.Unavailable())
    assert found is not None
    return found


def dropped(*rows: Offer) -> Relaxed | None:
    return funnel.relaxed(sampled(*rows), WORK, offer_refusal.Unavailable())


def test_without_a_sample_there_is_nothing_to_tell() -> None:
    assert funnel.of(sampled(at=None), WORK, offer_refusal.Unavailable()) is None
    assert funnel.of(sampled(), replace(WORK, markets=("runpod",)), offer_refusal.Unavailable()) is None


def test_an_empty_sample_says_so() -> None:
    found = made()
    assert (found.rows, found.fits, found.steps, found.cheapest) == (0, 0, (), None)
    assert dropped() is None
    assert found.sentence == f"the search at {AT:%H:%M} UTC found no offer at all"


def test_a_funnel_in_one_sentence() -> None:
    others = [builders.offer(n, gpu=gpu.model("RTX 3090")) for n in range(3)]
    slow = [builders.offer(n, inet_down_mbps=90.0) for n in range(10, 12)]
    dear = [builders.offer(n, floor=builders.per_hour(f"0.3{n - 20}")) for n in range(20, 24)]
    found = made(*others, *slow, *dear)
    assert found.sentence == (
        "of 9 offers sampled at 11:48 UTC, 6 RTX 4090, 4 with 500 Mb/s down, 0 at $0.2500/h or less; "
        "the cheapest that fits otherwise costs $0.3042/h"
    )
    assert [(step.code, step.left) for step in found.steps] == [("gpu", 6), ("inet_down", 4), ("price", 0)]
    relaxed = dropped(*others, *slow, *dear)
    assert relaxed is not None
    assert (relaxed.key, relaxed.fits) == ("max_price", 4)
    assert relaxed.cheapest == found.cheapest


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"inet_down_mbps": 90.0}, "min_inet_down"),
        ({"reliability": 0.5}, "min_reliability"),
        ({"gpu": gpu.model("RTX 3090")}, "gpu"),
        ({"is_verified": False}, "verified"),
        ({"disk_gb": 1.0}, "disk_gb"),
    ],
)
def test_the_requirement_to_drop_is_named_by_its_key(changes: dict[str, Any], key: str) -> None:
    found = dropped(builders.offer(1, **changes), builders.offer(2, floor=builders.per_hour("9"), ask=None, **changes))
    assert found is not None
    assert (found.key, found.fits) == (key, 1)


def test_a_market_that_does_not_tell_of_data_centres_is_named_as_such() -> None:
    work = replace(WORK, requirements=replace(WORK.requirements, datacenter_only=True))
    silent = [builders.offer(n, is_datacenter=None) for n in range(3)]
    elsewhere = [builders.offer(n, is_datacenter=False) for n in range(5, 7)]
    found = made(*silent, *elsewhere, builders.offer(9), work=work)
    assert found.sentence.startswith(
        "of 6 offers sampled at 11:48 UTC, 3 whose market shows whether they are in a data centre, 1 in a data centre"
    )
    relaxed = funnel.relaxed(sampled(*silent), work, offer_refusal.Unavailable())
    assert relaxed is not None
    assert (relaxed.key, relaxed.fits) == ("datacenter", 3)


def test_what_fails_two_requirements_is_helped_by_neither() -> None:
    assert dropped(builders.offer(1, reliability=0.5, inet_down_mbps=90.0)) is None


@given(st.lists(st.sampled_from(CHANGES), max_size=30))
def test_each_offer_falls_out_once_and_the_rest_fits(changes: list[dict[str, Any]]) -> None:
    rows = [builders.offer(number, **each) for number, each in enumerate(changes)]
    found = made(*rows)
    lefts = [found.rows, *(step.left for step in found.steps)]
    assert lefts == sorted(lefts, reverse=True)
    assert lefts[-1] == found.fits == sum(not each for each in changes)
    assert len(set(lefts)) == len(lefts)


def test_what_holds_a_lease_of_ours_falls_out_by_name() -> None:
    row = builders.offer(1)
    found = funnel.of(sampled(row), WORK, offer_refusal.Unavailable(hosts={row.host}))
    assert found is not None
    assert [(step.code, step.left) for step in found.steps] == [("host_held", 0)]


def test_an_empty_sample_says_what_its_market_lacks() -> None:
    missing = {Tenure.ON_DEMAND: "dstack has no fleet gpubid: `gpubid doctor` prints the file for `dstack apply -f`"}
    view = builders.view(sample=(), sampled_at=builders.NOW, not_sold=missing)
    of = funnel.of(builders.fleet(markets={"vast": view}), builders.workload(), offer_refusal.Unavailable())
    assert of is not None
    assert of.sentence.endswith(f"UTC found no offer at all: {missing[Tenure.ON_DEMAND]}")


def test_a_market_that_cannot_be_read_is_the_reason_where_no_search_found_anything() -> None:
    """`fleet` blamed the search of a market whose key was refused."""
    refused = msgspec.structs.replace(builders.view(), is_fresh=False, trouble="vast does not take the key (401)")
    away = msgspec.structs.replace(builders.view(market="runpod"), is_fresh=False, trouble="runpod: no connection")
    fleet = builders.fleet(leases=(), markets={"vast": refused, "runpod": away})
    work = replace(WORK, markets=("vast",))
    found = Proposal(builders.slot(), None, Reason("no_view", "no search in the last two minutes found an offer"))
    told = funnel.explained(found, None, funnel.unread(fleet, work)).reason.sentence
    assert told == f"{found.reason.sentence}; vast cannot be read: vast does not take the key (401)"
