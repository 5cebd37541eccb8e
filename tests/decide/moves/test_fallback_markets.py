"""Fallback markets open once a slot has been down for a while, and close when every slot is up."""

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import needs, plan
from agent.decide.limits.limits import Limits
from agent.decide.moves import fallback_markets
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand, DemandFrom
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.decision import Hold, Rent
from agent.domain.work.run_times.run_window import WindowNow, WindowRule
from agent.domain.work.workload import Fallback, WorkloadKind
from agent.observe import snapshot
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import Patient, PatientParams
from tests.support import builders

WORK = builders.workload(markets=("vast",), fallback=Fallback(("dstack",)))
LONG_AGO = builders.ago(hours=1)
TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
FALLBACKS = {"a": Fallback(("dstack",)), "b": Fallback()}
ALL, NONE = frozenset({"dstack"}), frozenset[str]()


def seen(*leases: Lease, since: datetime = LONG_AGO, work: Any = WORK, **changes: Any) -> Fleet:
    return builders.fleet(workloads=(work,), leases=leases, known_since={work.name: since}, **changes)


def down(minutes: float, state: LeaseState = LeaseState.PAUSED) -> Lease:
    return builders.lease(state=state, state_since=builders.ago(minutes=minutes))


@pytest.mark.parametrize(
    ("fleet", "closed"),
    [
        (seen(since=builders.ago(minutes=9)), ALL),
        (seen(since=builders.ago(minutes=10)), NONE),
        (seen(vacated={builders.TRAIN_0: builders.ago(minutes=3)}), ALL),
        (seen(vacated={builders.TRAIN_0: builders.ago(minutes=11)}), NONE),
        (seen(down(9)), ALL),
        (seen(down(11)), NONE),
        (seen(down(11, LeaseState.OFFLINE)), NONE),
        (seen(down(60, LeaseState.RUNNING)), ALL),
        (seen(down(60, LeaseState.STARTING)), ALL),
        (seen(down(60, LeaseState.MISSING)), ALL),
    ],
    ids=str,
)
def test_they_open_by_the_time_of_the_slot_that_is_down_longest(fleet: Fleet, closed: frozenset[str]) -> None:
    assert fallback_markets.closed(fleet, WORK) == closed


TWO = builders.workload(markets=("vast",), fallback=Fallback(("dstack",)), slots=2)
TRAIN_1 = Slot("train", 1)
UP = builders.lease(state=LeaseState.RUNNING, state_since=builders.ago(minutes=60))


@pytest.mark.parametrize("word", [Word.DONE, Word.HELD, Word.PAUSE, Word.DRAIN, Word.LOCK])
def test_a_slot_that_is_meant_to_be_empty_opens_nothing(word: Word) -> None:
    held = OperatorHold(word, hold.of_slot(TRAIN_1), LONG_AGO, "a person")
    assert fallback_markets.closed(seen(UP, work=TWO), TWO) == NONE, "the other slot is down"
    fleet = seen(UP, work=TWO, holds=(held,))
    assert fallback_markets.closed(fleet, TWO) == ALL
    assert fallback_markets.opens_at(fleet, TWO) is None


@pytest.mark.parametrize(("lost", "closed"), [(None, ALL), (3, ALL), (11, NONE)])
def test_a_spare_slot_that_is_not_worth_its_price_opens_nothing(lost: int | None, closed: frozenset[str]) -> None:
    """A third slot that was left empty for hours opened the fallback at the first second of every loss."""
    three = builders.workload(
        markets=("vast",), fallback=Fallback(("dstack",)), slots=3, kind=WorkloadKind.SERVICE, strategy="hedged"
    )
    running = (UP,) if lost is not None else (UP, builders.lease(2, slot=TRAIN_1))
    vacated = {} if lost is None else {TRAIN_1: builders.ago(minutes=lost)}
    warm = HedgedParams(keep_warm=True, share_of_owner=1.0, share_of_market=1.0, spare_slots=1)
    tuned = {"hedged": builders.tuned(Hedged(), warm, "hedged")}
    fleet = snapshot.enriched(seen(*running, work=three, vacated=vacated), tuned)
    assert fallback_markets.closed(fleet, three) == closed
    plain = msgspec.structs.replace(fleet, warm_slots={})
    keys = [each.key for each in needs.needs(plain, None, frozenset(), tuned)]
    assert ["fallback" in key for key in keys] == [closed == NONE], "a search is new once it really opens"


def test_a_slot_that_an_array_or_a_demand_does_not_want_opens_nothing() -> None:
    array = builders.workload(markets=("vast",), fallback=Fallback(("dstack",)), slots=2, array=ArrayTerms(at_once=1))
    assert fallback_markets.closed(seen(UP, work=array), array) == ALL
    demand = dataclasses.replace(TWO, demand=Demand(1, DemandFrom.HTTP))
    assert fallback_markets.closed(seen(UP, work=demand), demand) == ALL


def test_outside_of_a_window_nothing_opens_and_from_its_opening_on_the_time_is_counted() -> None:
    rule = WindowRule("0 8 * * *", timedelta(hours=10))
    work = dataclasses.replace(WORK, windows=(rule,))
    shut = {"train": WindowNow(is_open=False, until=builders.NOW)}
    assert fallback_markets.closed(seen(work=work, windows=shut), work) == ALL
    for minutes, closed in ((9, ALL), (11, NONE)):
        is_open = {"train": WindowNow(is_open=True, until=None, since=builders.ago(minutes=minutes))}
        assert fallback_markets.closed(seen(work=work, windows=is_open), work) == closed


def test_the_time_begins_when_a_slot_is_wanted_again() -> None:
    for minutes, closed in ((9, ALL), (11, NONE)):
        fleet = seen(unwanted_at={builders.TRAIN_0: builders.ago(minutes=minutes)})
        assert fallback_markets.closed(fleet, WORK) == closed
        begun = dataclasses.replace(WORK, not_before=builders.ago(minutes=minutes))
        assert fallback_markets.closed(seen(work=begun), begun) == closed


def test_what_is_unwanted_now_is_remembered_for_workloads_with_a_fallback() -> None:
    held = OperatorHold(Word.PAUSE, hold.of_slot(builders.TRAIN_0), LONG_AGO, "a person")
    old = {Slot("gone", 0): LONG_AGO, TRAIN_1: LONG_AGO}
    fleet = seen(work=TWO, holds=(held,), unwanted_at=old)
    assert fallback_markets.unwanted_at(fleet) == {builders.TRAIN_0: builders.NOW, TRAIN_1: LONG_AGO}
    plain = builders.workload()
    assert fallback_markets.unwanted_at(seen(work=plain, holds=(held,))) == {}


def test_a_release_that_nobody_can_prove_is_no_reason_to_open() -> None:
    """It has left its slot, and another market's lease ran there until a minute ago."""
    row = builders.instance(is_called_over=True, state=InstanceState.OFFLINE)
    releasing = down(20 * 60, LeaseState.RELEASING)
    markets = {"vast": builders.view(instances=(row,))}
    fleet = seen(releasing, markets=markets, vacated={builders.TRAIN_0: builders.ago(minutes=1)})
    assert fleet.occupants_of(builders.TRAIN_0) == ()
    assert fallback_markets.closed(fleet, WORK) == ALL
    alone = seen(releasing, markets=markets, vacated={builders.TRAIN_0: builders.ago(hours=30)})
    assert fallback_markets.closed(alone, WORK) == NONE


def test_a_move_that_ended_a_minute_ago_beside_a_paused_lease_opens_nothing() -> None:
    fleet = seen(down(30), vacated={builders.TRAIN_0: builders.ago(minutes=1)})
    assert fallback_markets.closed(fleet, WORK) == ALL


def test_without_such_markets_nothing_is_closed() -> None:
    plain = builders.workload()
    assert fallback_markets.closed(seen(work=plain), plain) == NONE
    assert fallback_markets.opens_at(seen(work=plain), plain) is None


@pytest.mark.parametrize(("minutes", "kind"), [(9, Hold), (11, Rent)])
def test_a_plan_rents_there_only_then(minutes: float, kind: type) -> None:
    offer = builders.offer(1, market="dstack", host_id="pool/aws/a/b", floor=None)
    markets = {"vast": builders.view(), "dstack": builders.view(market="dstack", offers=(offer,))}
    fleet = seen(since=builders.ago(minutes=minutes), markets=markets)
    (decision,) = plan.plan(fleet, TUNED, Limits()).decisions
    assert isinstance(decision, kind)
    if kind is Hold:
        told = "no search in the last two minutes found an offer; dstack is a fallback: nothing is rented there "
        assert decision.reason.sentence.startswith(told), "its own offers are no reason to raise the price"


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_a_like_workload_without_them_rents_nothing_there(names: tuple[str, str]) -> None:
    works = tuple(builders.workload(each, markets=("vast",), fallback=FALLBACKS[each]) for each in names)
    offer = builders.offer(1, market="dstack", host_id="pool/aws/a/b", floor=None)
    markets = {"vast": builders.view(), "dstack": builders.view(market="dstack", offers=(offer,))}
    fleet = builders.fleet(workloads=works, leases=(), known_since=dict.fromkeys(names, LONG_AGO), markets=markets)
    decisions = plan.plan(fleet, TUNED, Limits()).decisions
    assert {each.slot.workload: type(each) for each in decisions if isinstance(each, Rent | Hold)} == {
        "a": Rent,
        "b": Hold,
    }


@pytest.mark.parametrize(("minutes", "is_told"), [(9, False), (11, True)])
def test_their_opening_is_a_new_choice_for_which_offers_are_searched_at_once(minutes: float, is_told: bool) -> None:
    (need,) = needs.needs(seen(since=builders.ago(minutes=minutes)))
    assert ("fallback" in need.key) is is_told
