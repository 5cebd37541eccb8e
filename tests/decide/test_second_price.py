"""Decisions where the price paid is not the bid: the bid is the value, the money is the price, the caps are the bid."""

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import explain, plan
from agent.decide.facts import LeaseChanged
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.decide.pricing import funnel, offer_refusal
from agent.decide.reconcile import outcomes, reconcile
from agent.decide.reconcile.losses import cause as causes
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent
from agent.domain.work.workload import Checkpoint, Workload, WorkloadKind
from strategies.deadline import Deadline as DeadlineStrategy
from strategies.deadline import DeadlineParams
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import Patient, PatientParams
from tests.support import builders, second_price

TUNED = {
    "patient": builders.tuned(Patient(), PatientParams()),
    "hedged": builders.tuned(Hedged(), HedgedParams(), "hedged"),
    "deadline": builders.tuned(DeadlineStrategy(), DeadlineParams(), "deadline"),
}
DUE = Deadline(4.0, builders.NOW + timedelta(hours=20))
WAITS: dict[str, Any] = {"state": LeaseState.PAUSED, "has_run": False, "state_since": builders.ago(minutes=3)}


def work(**changes: Any) -> Workload:
    return builders.workload(**{"value_per_hour": builders.per_hour("0.80"), **changes})


def decided(fleet: Fleet, caps: Limits = builders.NO_LIMITS) -> tuple[Decision, ...]:
    return plan.plan(fleet, TUNED, caps).decisions


def looked(lease: Lease, row: Instance, *, at: int = 1, memory: Memory | None = None) -> reconcile.Reconciliation:
    """Reconcile a listing that was read `at` polls of 15 s after the last metering."""
    now = builders.NOW + timedelta(seconds=15 * at)
    view = second_price.view(instances=(row,), listed_at=now, listed_monotonic=1000.0 + 15 * at, listings=10 + at)
    fleet = builders.fleet(leases=(lease,), now=now, workloads=(work(),), markets={second_price.NAME: view})
    return reconcile.reconcile(fleet, memory or Memory())


def changed(result: reconcile.Reconciliation) -> LeaseChanged:
    (fact,) = [fact for fact in result.facts if isinstance(fact, LeaseChanged)]
    return fact


def gpu_micros(fact: LeaseChanged) -> int:
    return sum(charge.gpu.micros for charge in fact.charges)


# --- bids -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strategy", ["patient", "hedged", "deadline"])
def test_a_strategy_bids_what_the_hour_is_worth_and_reckons_with_what_it_costs(strategy: str) -> None:
    changes: dict[str, Any] = {"deadline": DUE, "kind": WorkloadKind.BATCH} if strategy == "deadline" else {}
    offer = second_price.pool()
    (rent,) = decided(second_price.fleet(offers=[offer], workloads=(work(strategy=strategy, **changes),)))
    assert isinstance(rent, Rent)
    assert rent.is_limit
    assert rent.bid is not None
    assert 0.7 < rent.bid.dollars <= 0.80
    assert rent.expected == offer.floor
    assert rent.rate == rent.bid + offer.disk_rate(20.0)


def test_a_market_where_the_price_paid_is_the_bid_is_bid_for_as_ever() -> None:
    (rent,) = decided(builders.fleet(workloads=(work(),), markets={"vast": builders.view(offers=(builders.offer(),))}))
    assert isinstance(rent, Rent)
    assert (rent.is_limit, rent.expected) == (False, None)
    assert rent.bid is not None
    assert rent.bid <= builders.per_hour("0.22")


def test_a_limit_above_what_the_file_allows_is_lowered_at_once_and_a_near_one_stays() -> None:
    lease = second_price.lease(bid_limit=builders.per_hour("0.80"), bid_since=builders.ago(minutes=1))
    dear = work(value_per_hour=builders.per_hour("0.40"))
    (rebid,) = decided(second_price.fleet(leases=(lease,), rows=[second_price.row()], workloads=(dear,)))
    assert isinstance(rebid, Rebid)
    assert 0.35 < rebid.bid.dollars <= 0.40
    near = msgspec.structs.replace(lease, bid_limit=rebid.bid, bid_since=None)
    (hold,) = decided(second_price.fleet(leases=(near,), rows=[second_price.row()], workloads=(dear,)))
    assert isinstance(hold, Hold)
    assert f"at $0.2200/h under a limit of {rebid.bid}" in hold.reason.sentence


def test_a_limit_far_below_the_value_is_raised_after_some_auctions() -> None:
    lease = second_price.lease(bid_limit=builders.per_hour("0.30"), bid_since=builders.ago(minutes=9))
    fresh = second_price.fleet(leases=(lease,), rows=[second_price.row()], workloads=(work(),))
    assert isinstance(decided(fresh)[0], Hold)
    older = msgspec.structs.replace(lease, bid_since=builders.ago(minutes=11))
    (rebid,) = decided(second_price.fleet(leases=(older,), rows=[second_price.row()], workloads=(work(),)))
    assert isinstance(rebid, Rebid)
    assert 0.7 < rebid.bid.dollars <= 0.80


@pytest.mark.parametrize("strategy", ["patient", "hedged", "deadline"])
def test_a_pool_of_unknown_price_is_waited_for_only_if_nothing_else_fits(strategy: str) -> None:
    changes: dict[str, Any] = {"deadline": DUE, "kind": WorkloadKind.BATCH} if strategy == "deadline" else {}
    wants, told = work(strategy=strategy, **changes), second_price.pool(2, floor=builders.per_hour("0.70"))
    (rent,) = decided(second_price.fleet(offers=[second_price.unknown()], workloads=(wants,)))
    assert isinstance(rent, Rent)
    assert (rent.reason.code, rent.expected, rent.is_limit) == ("waiting_bid", None, True)
    assert rent.bid is not None
    assert rent.bid <= builders.per_hour("0.80")
    (known,) = decided(second_price.fleet(offers=[second_price.unknown(), told], workloads=(wants,)))
    assert isinstance(known, Rent)
    assert known.offer == told


def test_no_running_lease_moves_to_a_pool_of_unknown_price() -> None:
    lease = second_price.lease(gpu_rate=builders.per_hour("0.70"), bid_limit=builders.per_hour("0.79"))
    offers = [second_price.unknown(2)]
    (hold,) = decided(
        second_price.fleet(leases=(lease,), rows=[second_price.row()], offers=offers, workloads=(work(),))
    )
    assert isinstance(hold, Hold)


# --- money ------------------------------------------------------------------------------------------------------------
def test_the_rent_is_a_lease_at_the_expected_price_and_counts_at_its_limit() -> None:
    (rent,) = decided(second_price.fleet(offers=[second_price.pool()], workloads=(work(),)))
    assert isinstance(rent, Rent)
    intent = builders.intent(market=second_price.NAME, disk_gb=20.0, price=rent.bid, rate=rent.rate)
    lease = outcomes.rented(intent, rent, "1", builders.NOW).lease
    assert (lease.gpu_rate, lease.bid_limit, lease.agreed_rate) == (rent.expected, rent.bid, None)
    assert lease.committed_rate == rent.rate
    doubted = second_price.fleet(intents=(intent,), workloads=(work(),))
    assert limits.committed_by_fleet(doubted).rate == rent.rate


def test_a_new_limit_changes_no_price() -> None:
    lease = second_price.lease(accrued_until=builders.ago(hours=1))
    done = outcomes.written(Rebid(lease, builders.per_hour("0.50"), Reason("x", "y")), builders.NOW, Checkpoint())
    assert (done.lease.gpu_rate, done.lease.bid_limit) == (lease.gpu_rate, builders.per_hour("0.50"))
    assert sum(charge.gpu.micros for charge in done.charges) == 220_000


@pytest.mark.parametrize("price", ["0.01", "0.22", "0.40", "0.90"])
def test_the_listed_price_is_metered_whether_it_rose_or_fell(price: str) -> None:
    """No doubt delays it: the price of an auction is not agreed, and the limit bounds it."""
    row = second_price.row(gpu_rate=builders.per_hour(price))
    lease = second_price.lease()
    first = looked(lease, row)
    after = changed(first).after if price != "0.22" else lease
    assert (after.gpu_rate, after.doubted_rate, after.bid_limit) == (builders.per_hour(price), None, lease.bid_limit)
    later = changed(looked(after, row, at=41, memory=first.memory))
    paid = gpu_micros(later) + (gpu_micros(changed(first)) if price != "0.22" else 0)
    assert paid == pytest.approx(builders.per_hour(price).micros * 615 / 3600, abs=1500)
    assert later.after.agreed == builders.per_hour(price)


def test_a_price_above_the_limit_is_doubted_and_told() -> None:
    result = looked(second_price.lease(), second_price.row(gpu_rate=builders.per_hour("5.00")))
    assert changed(result).after.gpu_rate == builders.per_hour("0.22")
    assert any("above its limit of $0.9000/h" in getattr(fact, "sentence", "") for fact in result.facts)


def test_a_bid_that_begins_to_run_is_never_metered_at_its_limit() -> None:
    waits = second_price.lease(gpu_rate=builders.per_hour("0.90"), **WAITS)
    fact = changed(looked(waits, second_price.row(gpu_rate=builders.per_hour("0.10"))))
    assert fact.after.state is LeaseState.RUNNING
    assert fact.after.gpu_rate == builders.per_hour("0.10")
    assert gpu_micros(fact) <= builders.per_hour("0.10").micros * 15 // 3600 + 1


def test_a_price_that_cannot_be_read_goes_on_as_it_was() -> None:
    row = second_price.row(gpu_rate=builders.per_hour(0), unread=frozenset({"gpu_rate"}))
    fact = changed(looked(second_price.lease(), row, at=24))
    assert fact.after.gpu_rate == builders.per_hour("0.22")
    assert gpu_micros(fact) == builders.per_hour("0.22").micros // 10


def test_minutes_under_notice_are_metered() -> None:
    ends = builders.NOW + timedelta(minutes=5)
    fact = changed(looked(second_price.lease(), second_price.row(notice_at=ends), at=4))
    assert (fact.after.state, fact.after.notice_at, fact.after.bills) == (
        LeaseState.RUNNING,
        ends,
        Bills.GPU_AND_DISK,
    )
    assert gpu_micros(fact) == round(builders.per_hour("0.22").micros / 60)


# --- bids that wait for an auction ------------------------------------------------------------------------------------
def test_a_new_bid_waits_and_is_no_loss() -> None:
    fresh = second_price.lease(state=LeaseState.STARTING, has_run=False, read_back_at=None, bills=Bills.DISK)
    fact = changed(looked(fresh, second_price.row(state=InstanceState.PENDING, gpu_rate=builders.per_hour(0))))
    assert (fact.after.state, fact.kind, fact.cause) == (LeaseState.PAUSED, EventKind.LEASE_QUEUED, None)
    assert fact.after.is_open_bid
    assert fact.after.read_back_at is not None
    assert (gpu_micros(fact), fact.after.gpu_rate) == (0, fresh.gpu_rate)
    assert fact.after.committed_rate == builders.per_hour("0.904")


def test_a_bid_that_loses_its_place_has_lost_it() -> None:
    row = second_price.row(state=InstanceState.PENDING)
    first = looked(second_price.lease(), row)
    fact = changed(looked(second_price.lease(), row, at=2, memory=first.memory))
    assert (fact.after.state, fact.kind) == (LeaseState.PAUSED, EventKind.LEASE_INTERRUPTED)


def test_a_waiting_bid_waits_on_without_a_better_place_and_is_parked_before_a_move() -> None:
    waits = second_price.lease(gpu_rate=builders.per_hour("0.20"), bid_limit=builders.per_hour("0.79"), **WAITS)
    row = second_price.row(state=InstanceState.PENDING)
    (hold,) = decided(second_price.fleet(leases=(waits,), rows=[row], workloads=(work(),)))
    assert isinstance(hold, Hold)
    assert hold.reason.code == "wait_paused"
    offers = [second_price.pool(2, floor=builders.per_hour("0.05"))]
    (pause,) = decided(second_price.fleet(leases=(waits,), rows=[row], offers=offers, workloads=(work(),)))
    assert isinstance(pause, Pause)
    assert pause.reason.code == "cancel_start"
    parked = msgspec.structs.replace(waits, paused_by_us=True)
    (rent,) = decided(second_price.fleet(leases=(parked,), rows=[row], offers=offers, workloads=(work(),)))
    assert isinstance(rent, Rent)


def test_at_most_one_bid_of_a_slot_waits() -> None:
    old, new = second_price.lease(1, **WAITS), second_price.lease(2, opened_at=builders.NOW, **WAITS)
    rows = [second_price.row(number, state=InstanceState.PENDING) for number in (1, 2)]
    made = decided(second_price.fleet(leases=(old, new), rows=rows, workloads=(work(),)))
    pauses = [each for each in made if isinstance(each, Pause)]
    assert [(pause.lease.instance_id, pause.reason.code) for pause in pauses] == [("1", "one_open_bid")]


def test_a_moves_new_bid_is_waited_for_during_some_auctions() -> None:
    old = second_price.lease(1)
    new = second_price.lease(2, opened_at=builders.NOW, **WAITS)
    rows = [second_price.row(1), second_price.row(2, state=InstanceState.PENDING)]
    made = decided(second_price.fleet(leases=(old, new), rows=rows, workloads=(work(),)))
    assert [type(each) for each in made] == [Hold]
    late = msgspec.structs.replace(new, state_since=builders.ago(minutes=11))
    (lost,) = decided(second_price.fleet(leases=(old, late), rows=rows, workloads=(work(),)))
    assert isinstance(lost, Release)
    assert lost.lease.instance_id == "2"


# --- caps and kills ---------------------------------------------------------------------------------------------------
def test_caps_count_the_limit_and_end_what_waits_before_what_runs() -> None:
    runs = second_price.lease(1, slot=Slot("train", 0))
    waits = second_price.lease(2, slot=Slot("serve", 0), **WAITS)
    works = (builders.workload("train", priority=1), builders.workload("serve", priority=9))
    rows = [second_price.row(1), second_price.row(2, state=InstanceState.PENDING)]
    fleet = second_price.fleet(leases=(runs, waits), rows=rows, workloads=works)
    assert limits.committed_by_fleet(fleet).rate == builders.per_hour("1.808")
    first = decided(fleet, Limits(per_hour=builders.per_hour("1.00")))
    assert [each.lease.instance_id for each in first if isinstance(each, Pause)] == ["2"]
    both = decided(fleet, Limits(per_hour=builders.per_hour("0.23")))
    assert [each.lease.instance_id for each in both if isinstance(each, Pause)] == ["2", "1"]
    assert decided(fleet, Limits(per_hour=builders.per_hour("1.808")))[0].__class__ is Hold


def test_a_start_of_a_parked_bid_counts_at_its_limit() -> None:
    parked = second_price.lease(state=LeaseState.PAUSED, paused_by_us=True, bid_limit=builders.per_hour("0.79"))
    row = second_price.row(state=InstanceState.PAUSED)
    fleet = second_price.fleet(leases=(parked,), rows=[row], workloads=(work(),))
    (hold,) = decided(fleet, Limits(per_hour=builders.per_hour("0.20")))
    assert isinstance(hold, Hold)
    assert hold.reason.code == "limit"


def test_a_limit_is_cut_to_what_every_cap_allows_and_no_lower_than_the_expected_price() -> None:
    fleet = second_price.fleet(offers=[second_price.pool()], workloads=(work(),))
    (rent,) = decided(fleet, Limits(per_hour=builders.per_hour("0.50")))
    assert isinstance(rent, Rent)
    assert rent.bid == builders.per_hour("0.49")
    assert rent.rate <= builders.per_hour("0.50")
    assert "the limit is cut to $0.4900/h" in rent.reason.sentence
    (each,) = decided(fleet, Limits(per_instance_hour=builders.per_hour("0.25")))
    assert isinstance(each, Rent)
    assert each.bid == builders.per_hour("0.24")
    hour = timedelta(hours=1)
    (day,) = decided(fleet, Limits(per_day=builders.usd("0.40"), reserve=hour))
    assert isinstance(day, Rent)
    assert day.bid == builders.per_hour("0.39")


def test_before_a_cap_blocks_the_limit_and_the_expected_price_are_named_apart() -> None:
    fleet = second_price.fleet(offers=[second_price.pool()], workloads=(work(),))
    (hold,) = decided(fleet, Limits(per_hour=builders.per_hour("0.10")))
    assert isinstance(hold, Hold)
    assert hold.reason.limit == "per_hour"
    assert re.search(r"\(at its limit of \$0\.7\d00/h; the expected price is \$0\.2000/h\)", hold.reason.sentence)
    waiting = second_price.fleet(offers=[second_price.unknown()], workloads=(work(),))
    (blocked,) = decided(waiting, Limits(instances=0))
    assert "the expected price is unknown" in blocked.reason.sentence


def test_a_raise_is_cut_too() -> None:
    lease = second_price.lease(bid_limit=builders.per_hour("0.30"), bid_since=None)
    fleet = second_price.fleet(leases=(lease,), rows=[second_price.row()], workloads=(work(),))
    (rebid,) = decided(fleet, Limits(per_hour=builders.per_hour("0.50")))
    assert isinstance(rebid, Rebid)
    assert rebid.bid == builders.per_hour("0.49")
    (hold,) = decided(fleet, Limits(per_hour=builders.per_hour("0.305")))
    assert isinstance(hold, Hold)


# --- explained --------------------------------------------------------------------------------------------------------
def test_explain_shows_limit_expected_price_and_margin() -> None:
    dear, unknown = second_price.pool(2, floor=builders.per_hour("5.00")), second_price.unknown(3)
    fleet = second_price.fleet(offers=[second_price.pool(), dear, unknown], workloads=(work(),))
    made = plan.plan(fleet, TUNED, builders.NO_LIMITS)
    shown = explain.explanation_json(explain.explain(fleet, made, fleet.workloads[0]))
    (rent,), (best,) = shown["decisions"], shown["candidates"]
    for row, limit in ((rent, "bid_dollars_per_hour"), (best, "limit_dollars_per_hour")):
        assert row["expected_dollars_per_hour"] == 0.2
        assert row["margin_dollars_per_hour"] == pytest.approx(row[limit] - 0.2)
    assert "expected under a limit of $0.7" in rent["sentence"]
    assert shown["arrears"] == ["uniform sends its bill later: no credit ends the spending there, only budgets do"]
    assert {row["offer"]: row["code"] for row in shown["refused"]} == {"a2": "price", "a3": "price_unknown"}


def test_no_funnel_counts_on_an_unknown_price() -> None:
    rows = (
        second_price.pool(1, floor=builders.per_hour("0.90")),
        second_price.unknown(2, ask=builders.per_hour("0.01")),
    )
    view = second_price.view(sample=rows, sampled_at=builders.NOW)
    found = funnel.of(builders.fleet(markets={second_price.NAME: view}), work(), offer_refusal.Unavailable())
    assert found is not None
    assert [(step.code, step.left) for step in found.steps] == [("price_unknown", 1)]
    assert found.cheapest is not None
    assert found.cheapest.dollars > 0.9


# --- losses -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("floor", "cause"), [("0.95", Cause.OUTBID), ("0.50", Cause.UNKNOWN), (None, Cause.UNKNOWN)])
def test_a_loss_is_judged_by_the_limit_and_never_taken_for_a_persons_stop(floor: str | None, cause: Cause) -> None:
    offer = second_price.unknown() if floor is None else second_price.pool(floor=builders.per_hour(floor))
    view = second_price.view(offers=(offer,))
    why, _ = causes.of_stop(second_price.lease(), InstanceState.PAUSED, view, builders.ago(minutes=1), builders.NOW)
    assert why is cause


def test_a_waiting_bid_that_would_win_now_is_not_left_for_another_pool() -> None:
    lost = second_price.lease(state=LeaseState.PAUSED, interrupted_by=Cause.OUTBID, bid_limit=builders.per_hour("0.79"))
    row = second_price.row(state=InstanceState.PAUSED)
    offers = [second_price.pool(1), second_price.pool(2, floor=builders.per_hour("0.21"))]
    (hold,) = decided(second_price.fleet(leases=(lost,), rows=[row], offers=offers, workloads=(work(),)))
    assert isinstance(hold, Hold)
    (pause,) = decided(second_price.fleet(leases=(lost,), rows=[row], offers=offers[1:], workloads=(work(),)))
    assert isinstance(pause, Pause)


@pytest.mark.parametrize("strategy", ["patient", "hedged"])
def test_a_bid_of_the_whole_value_is_not_given_up_for_a_share_of_it(strategy: str) -> None:
    """The limit counts the whole value of an hour, so the wait for that hour counts it too."""
    lost = second_price.lease(
        state=LeaseState.PAUSED,
        interrupted_by=Cause.OUTBID,
        bid_limit=builders.per_hour("0.79"),
        gpu_rate=builders.per_hour("0.77"),
        state_since=builders.ago(minutes=1),
    )
    row, wants = second_price.row(state=InstanceState.PAUSED), work(strategy=strategy)
    (hold,) = decided(second_price.fleet(leases=(lost,), rows=[row], workloads=(wants,)))
    assert isinstance(hold, Hold)


def test_two_slots_may_move_to_one_pool_at_once() -> None:
    parked = [
        second_price.lease(
            number,
            slot=Slot("train", number),
            state=LeaseState.PAUSED,
            paused_by_us=True,
            interrupted_by=Cause.OUTBID,
            bid_limit=builders.per_hour("0.79"),
            state_since=builders.ago(hours=1),
        )
        for number in (0, 1)
    ]
    rows = [second_price.row(number, state=InstanceState.PAUSED) for number in (0, 1)]
    offers, wants = [second_price.pool(7, floor=builders.per_hour("0.05"))], work(slots=2)
    made = decided(second_price.fleet(leases=tuple(parked), rows=rows, offers=offers, workloads=(wants,)))
    assert [type(each) for each in made] == [Rent, Rent]
