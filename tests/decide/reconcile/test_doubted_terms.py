"""One wrong figure of a listing does not change what a lease costs, or when its contract ends."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import Alert, LeaseChanged
from agent.decide.reconcile import doubted_terms, outcomes
from agent.decide.reconcile.agreed_rate import PATIENCE
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import InstanceState
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Reason, Rebid
from agent.domain.work.workload import Checkpoint
from tests.support import builders
from tests.support.listings import NOW, POLL, seen

HELD = builders.lease(ends_at=NOW + timedelta(days=3))
PATIENT_POLLS = int(PATIENCE / POLL)
PRICES = {"traffic_down_micros_per_gb": 2604, "traffic_up_micros_per_gb": 3906}
LIES: dict[str, dict[str, Any]] = {
    "the disk at a thousand times its price": {"disk_rate": builders.per_hour(4)},
    "an end in half an hour": {"ends_at": NOW + timedelta(minutes=30)},
    "an end in the past": {"ends_at": NOW - timedelta(days=1)},
    "a thousand times the traffic": {"traffic_down_gb": 6500.0, **PRICES},
    "an upload of petabytes": {"traffic_up_gb": 1e9, **PRICES},
}


def listed(held: Lease, polls: int, **changes: Any) -> tuple[Lease, list[Any]]:
    """Return a lease after so many listings that show it with `changes`, and every fact."""
    facts: list[Any] = []
    memory = Memory()
    for at in range(1, polls + 1):
        result = seen(held, builders.instance(**changes), at=at, memory=memory)
        memory = result.memory
        facts += result.facts
        held = next((fact.after for fact in result.facts if isinstance(fact, LeaseChanged)), held)
    return held, facts


def micros(facts: list[Any]) -> dict[str, int]:
    charges = [charge for fact in facts if isinstance(fact, LeaseChanged) for charge in fact.charges]
    return {name: sum(getattr(charge, name).micros for charge in charges) for name in ("disk", "traffic")}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_wrong_figure_changes_no_lease_and_no_count(lie: dict[str, Any]) -> None:
    polls = PATIENT_POLLS - 1
    after, facts = listed(HELD, polls, **lie)
    assert (after.disk_rate, after.ends_at, after.traffic_down_gb) == (HELD.disk_rate, HELD.ends_at, 0.0)
    assert micros(facts)["traffic"] == 0
    assert micros(facts)["disk"] <= HELD.disk_rate.over(polls * POLL.total_seconds()).micros + polls


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_person_is_told_of_a_wrong_figure(lie: dict[str, Any]) -> None:
    _, facts = listed(HELD, 1, **lie)
    [alert] = [fact for fact in facts if isinstance(fact, Alert)]
    assert alert.key.startswith("vast-1@")
    assert not [fact for fact in listed(HELD, 3)[1] if isinstance(fact, Alert)]


def test_a_disk_that_costs_more_for_a_quarter_of_an_hour_is_owed_from_the_first_listing() -> None:
    dear = builders.per_hour(4)
    polls = PATIENT_POLLS + 2
    after, facts = listed(HELD, polls, disk_rate=dear)
    assert after.disk_rate == dear
    metered = (after.accrued_until - NOW - POLL).total_seconds()
    assert micros(facts)["disk"] == pytest.approx(dear.over(metered).micros, abs=100)


def test_a_fall_of_a_disks_price_needs_two_further_listings() -> None:
    """The known price may be a wrong one that an adoption took over: it must not count for long."""
    dear = builders.lease(disk_rate=builders.per_hour(4))
    cheap = builders.per_hour("0.004")
    assert listed(dear, 2, disk_rate=cheap)[0].disk_rate == dear.disk_rate
    assert listed(dear, 3, disk_rate=cheap)[0].disk_rate == cheap


def test_the_lowest_listed_price_of_a_disk_is_believed() -> None:
    memory, held = Memory(), HELD
    for at in range(1, PATIENT_POLLS + 3):
        row = builders.instance(disk_rate=builders.per_hour(4 if at % 2 else 900))
        result = seen(held, row, at=at, memory=memory)
        memory = result.memory
        held = next((fact.after for fact in result.facts if isinstance(fact, LeaseChanged)), held)
    assert held.disk_rate == builders.per_hour(4)


def test_an_earlier_end_is_believed_if_it_is_listed_long_enough() -> None:
    soon = NOW + timedelta(minutes=50)
    after, _ = listed(HELD, PATIENT_POLLS + 2, ends_at=soon)
    assert after.ends_at == soon


def test_an_end_that_is_put_forward_twice_is_believed_in_the_end() -> None:
    """The later one of both counted for ever, and nothing was left in time."""
    memory, held = Memory(), HELD
    later, sooner = NOW + timedelta(minutes=110), NOW + timedelta(minutes=80)
    for at in range(1, 2 * PATIENT_POLLS + 8):
        row = builders.instance(ends_at=later if at <= 5 else sooner)
        result = seen(held, row, at=at, memory=memory)
        memory = result.memory
        held = next((fact.after for fact in result.facts if isinstance(fact, LeaseChanged)), held)
        assert held.ends_at in {HELD.ends_at, later, sooner}
    assert held.ends_at == sooner


def test_a_contract_that_runs_has_not_ended() -> None:
    after, _ = listed(HELD, 3 * PATIENT_POLLS, ends_at=NOW - timedelta(days=1))
    assert after.ends_at == HELD.ends_at


@pytest.mark.parametrize("ends_at", [NOW + timedelta(days=9), NOW + timedelta(hours=3)])
def test_an_end_that_decides_nothing_yet_is_believed_at_once(ends_at: Any) -> None:
    after, facts = listed(HELD, 1, ends_at=ends_at)
    assert after.ends_at == ends_at
    assert not [fact for fact in facts if isinstance(fact, Alert)]


def test_much_traffic_that_a_line_carries_is_believed_at_once() -> None:
    held = builders.lease(accrued_until=NOW - timedelta(minutes=5))
    after, facts = listed(held, 1, traffic_down_gb=300.0, **PRICES)
    assert (after.traffic_down_gb, micros(facts)["traffic"]) == (300.0, 781_200)


def test_more_traffic_than_the_lines_carried_since_the_rent_is_never_believed() -> None:
    after, facts = listed(builders.lease(), 3 * PATIENT_POLLS, traffic_down_gb=1e6, **PRICES)
    assert (after.traffic_down_gb, micros(facts)["traffic"]) == (0.0, 0)


def test_traffic_that_is_written_late_is_believed_once_it_stays() -> None:
    held = builders.lease(opened_at=builders.ago(days=1))
    after, facts = listed(held, PATIENT_POLLS + 2, traffic_down_gb=700.0, **PRICES)
    assert (after.traffic_down_gb, micros(facts)["traffic"]) == (700.0, 1_822_800)


def test_a_disk_may_cost_less_once_its_instance_stops() -> None:
    """One market takes no money for a part of the disk of what is stopped."""
    dear = builders.lease(
        disk_rate=builders.per_hour("0.30"),
        state=LeaseState.STARTING,
        bills=Bills.DISK,
        paused_by_us=True,
        run_since=None,
    )
    row = builders.instance(disk_rate=builders.per_hour("0.04"), state=InstanceState.PAUSED)
    settled = doubted_terms.settle(builders.fleet(), dear, row, NOW, {})
    assert (settled.row.disk_rate, settled.doubts) == (row.disk_rate, {})
    running = builders.instance(disk_rate=builders.per_hour("0.04"), state=InstanceState.LOADING)
    assert doubted_terms.settle(builders.fleet(), dear, running, NOW, {}).row.disk_rate == dear.disk_rate


@pytest.mark.parametrize("rate", ["2.00", "31.00"])
def test_a_false_limit_pauses_no_bid_under_a_cap_of_the_rate(rate: str) -> None:
    """Only our own order changes a limit, and the cap of the rate counts it whole."""
    bid = builders.lease(bid_limit=builders.per_hour("0.30"))
    row = builders.instance(limit=builders.per_hour(rate))
    after, facts = listed(bid, PATIENT_POLLS - 1, limit=row.limit)
    assert after.bid_limit == bid.bid_limit
    assert {fact.key for fact in facts if isinstance(fact, Alert)} == {"vast-1@limit"}
    believed, _ = listed(bid, PATIENT_POLLS + 2, limit=row.limit)
    assert (believed.bid_limit, believed.own_bid) == (row.limit, bid.bid_limit)


def test_a_limit_that_an_order_of_ours_set_since_is_doubted_anew() -> None:
    """The market confirmed our order, and goes on listing another limit."""
    bid, row = builders.lease(bid_limit=builders.per_hour("0.30")), builders.instance(limit=builders.per_hour(31))
    since = doubted_terms.settle(builders.fleet(), bid, row, NOW, {}).doubts
    later = NOW + timedelta(minutes=16)
    long = {"vast-1": {"limit": replace(since["limit"], listings=9)}}
    assert doubted_terms.settle(builders.fleet(), bid, row, later, long).row.limit == row.limit
    believed = msgspec.structs.replace(bid, bid_limit=row.limit, recent_bids=(bid.bid,))
    ordered = outcomes.written(Rebid(believed, believed.own_bid, Reason("", "")), later, Checkpoint()).lease
    assert (ordered.bid_limit, ordered.recent_bids) == (bid.bid_limit, ())
    again = doubted_terms.settle(builders.fleet(), ordered, row, later + timedelta(minutes=1), long)
    assert again.row.limit == bid.bid_limit


def test_a_limit_that_differs_from_its_order_is_judged_by_the_readback() -> None:
    fresh = builders.lease(bid_limit=builders.per_hour("0.30"), state=LeaseState.STARTING, has_run=False)
    row = builders.instance(limit=builders.per_hour(31), state=InstanceState.LOADING)
    assert doubted_terms.settle(builders.fleet(), fresh, row, NOW, {}).row.limit == row.limit
