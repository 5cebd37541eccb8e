"""Limits outrank strategies, strike only what may raise spend, and count doubt as spend."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.limits import limits
from agent.decide.limits.limits import CommittedSpend, Limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, ZERO, Usd, UsdPerHour
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Rent, Resume
from tests.support import builders

WHY = Reason("code", "sentence")
PLACE = builders.slot()
HELD = builders.lease(state=LeaseState.PAUSED, paused_by_us=True)
RENT = Rent(PLACE, builders.offer(), Tenure.INTERRUPTIBLE, builders.per_hour("0.22"), builders.per_hour("0.224"), WHY)
RAISE = Rebid(HELD, builders.per_hour("0.30"), WHY)
RESUME = Resume(HELD, WHY)
PAYING: list[Decision] = [RENT, RAISE, RESUME]
SAVING: list[Decision] = [
    Pause(HELD, WHY),
    Release(HELD, WHY),
    Hold(PLACE, WHY),
    Rebid(HELD, builders.per_hour("0.21"), WHY),
]
IDLE = CommittedSpend(UsdPerHour(0), ZERO, ZERO, 0)
TIGHT = Limits(UsdPerHour(0), UsdPerHour(0), ZERO, ZERO, 0)


def struck(decision: Decision, *, caps: Limits = Limits(), now: CommittedSpend = IDLE, **seen: Any) -> str:
    """Return the name of the limit that strikes, or an empty text."""
    faulty = seen.pop("faulty", ())
    fleet = builders.fleet(markets={"vast": builders.view(**seen)})
    found = limits.strike(decision, fleet, now, caps, faulty)
    return found.limit if found else ""


@pytest.mark.parametrize("decision", SAVING, ids=lambda decision: type(decision).__name__)
def test_what_saves_money_always_passes(decision: Decision) -> None:
    assert struck(decision, caps=TIGHT, listings=0, is_fresh=False, faulty={"vast"}, no_spend_because="no") == ""


@pytest.mark.parametrize("decision", PAYING, ids=lambda decision: type(decision).__name__)
@pytest.mark.parametrize(
    ("limit", "seen"),
    [
        ("no_listing", {"listings": 0}),
        ("stale_view", {"is_fresh": False}),
        ("no_spend", {"no_spend_because": "spend = false"}),
        ("clock_skew", {"clock_skew_seconds": 60.5}),
        ("clock_skew", {"clock_skew_seconds": -61.0}),
        ("no_credit", {"credit": ZERO}),
        ("no_credit", {"credit": Usd(-1)}),
        ("", {"credit": None, "clock_skew_seconds": -60.0}),
    ],
    ids=str,
)
def test_what_pays_needs_a_view_that_may_be_paid_on(decision: Decision, limit: str, seen: dict[str, Any]) -> None:
    assert struck(decision, **seen) == limit


@pytest.mark.parametrize(("seconds", "side"), [(3592.0, "0:59:52 behind"), (-61.4, "0:01:01 ahead of")])
def test_a_clock_that_is_off_says_to_which_side_and_what_sets_it(seconds: float, side: str) -> None:
    found = limits.unpaid(builders.view(clock_skew_seconds=seconds))
    assert found is not None
    assert found.sentence == f"our clock is {side} the market's: `timedatectl set-ntp true` sets it"


@pytest.mark.parametrize("decision", PAYING, ids=lambda decision: type(decision).__name__)
def test_a_market_nobody_looks_at_is_not_paid(decision: Decision) -> None:
    found = limits.strike(decision, builders.fleet(markets={}), IDLE, Limits(), ())
    assert found is not None
    assert found.limit == "no_listing"


def test_during_a_market_fault_nothing_is_rented_but_what_is_held_may_be_won_back() -> None:
    assert struck(RENT, faulty={"vast"}) == "market_fault"
    assert struck(RAISE, faulty={"vast"}) == ""
    assert struck(RENT, faulty={"runpod"}) == ""


@pytest.mark.parametrize("decision", PAYING, ids=lambda decision: type(decision).__name__)
@pytest.mark.parametrize(
    ("limit", "caps"),
    [
        ("per_day", Limits(per_day=builders.usd("5"))),
        ("per_month", Limits(per_month=builders.usd("50"))),
        ("per_instance_hour", Limits(per_instance_hour=builders.per_hour("0.2239"))),
        ("", Limits(per_day=builders.usd("5.01"), per_month=builders.usd("50.01"))),
        ("", Limits(per_instance_hour=builders.per_hour("0.304"), per_hour=builders.per_hour("1.224"), instances=3)),
    ],
    ids=str,
)
def test_budgets_and_prices(decision: Decision, limit: str, caps: Limits) -> None:
    now = CommittedSpend(builders.per_hour("1.00"), builders.usd(5), builders.usd(50), 2)
    if limit == "per_instance_hour" and decision is RAISE:
        caps = Limits(per_instance_hour=builders.per_hour("0.3039"))
    assert struck(decision, caps=caps, now=now) == limit


def test_the_rate_of_the_fleet_is_capped_after_the_move() -> None:
    now = CommittedSpend(builders.per_hour("1.00"), ZERO, ZERO, 1)
    caps = Limits(per_hour=builders.per_hour("1.15"))
    assert struck(RENT, caps=caps, now=now) == "per_hour"
    assert struck(RESUME, caps=caps, now=now) == "per_hour"
    assert struck(RAISE, caps=caps, now=now) == ""


def test_instances_are_counted_but_those_held_already_are_no_reason_to_lose_them() -> None:
    full = CommittedSpend(builders.per_hour("1.00"), ZERO, ZERO, 3)
    assert struck(RENT, caps=Limits(instances=3), now=full) == "instances"
    assert struck(RENT, caps=Limits(instances=4), now=full) == ""
    assert struck(RAISE, caps=Limits(instances=2), now=full) == ""


def test_a_lease_that_would_come_back_by_itself_is_committed_already() -> None:
    lost = builders.lease(state=LeaseState.PAUSED)
    now = CommittedSpend(lost.committed_rate, ZERO, ZERO, 1)
    assert struck(Resume(lost, WHY), caps=Limits(per_hour=lost.committed_rate), now=now) == ""
    assert now.after(Resume(lost, WHY)).rate == lost.committed_rate
    assert now.after(Resume(HELD, WHY)).rate == lost.committed_rate + HELD.gpu_rate


def test_moves_of_one_plan_add_up() -> None:
    after = IDLE.after(RENT).after(RENT).after(RAISE).after(Release(HELD, WHY)).after(Hold(PLACE, WHY))
    assert (after.rate, after.instances) == (builders.per_hour("0.528"), 2)


def test_money_already_owed_counts_before_the_ledger_has_it() -> None:
    runs = builders.lease(accrued_until=builders.ago(hours=1))
    doubt = builders.intent(2, sent_at=builders.ago(minutes=30))
    fleet = builders.fleet(leases=(runs,), intents=(doubt,), spend=Spend(today=builders.usd(1), month=builders.usd(9)))
    now = limits.committed_by_fleet(fleet)
    assert now.today == builders.usd("1.336")
    assert now.month == builders.usd("9.336")
    assert now.rate == builders.per_hour("0.448")
    assert now.instances == 2


@pytest.mark.parametrize(("days", "today", "month"), [(0.25, 7, 7), (3, 13, 73), (30, 13, 469)])
def test_what_is_owed_for_days_spends_the_budget_of_each_day_and_month(days: float, today: int, month: int) -> None:
    """It is noon of the twentieth: of a doubt at $1/h today can have cost 12 dollars."""
    doubt = builders.intent(2, rate=builders.per_hour(1), sent_at=builders.ago(days=days))
    unclear = builders.lease(
        state=LeaseState.MISSING,
        bills=Bills.GPU_AND_DISK,
        gpu_rate=builders.per_hour(1),
        disk_rate=FREE,
        accrued_until=builders.ago(days=days),
    )
    spent = Spend(builders.usd(1), builders.usd(1), builders.usd(1))
    for fleet in (builders.fleet(intents=(doubt,), spend=spent), builders.fleet(leases=(unclear,), spend=spent)):
        now = limits.committed_by_fleet(fleet)
        assert (now.today, now.month) == (builders.usd(today), builders.usd(month))
        assert now.total == builders.usd(1) + builders.per_hour(1).over(days * 86_400)


@pytest.mark.parametrize(
    ("changes", "minutes", "owed"),
    [
        ({"state": LeaseState.STARTING}, 10, 0.667),
        ({"state": LeaseState.STARTING}, 60, 224),
        ({"state": LeaseState.PAUSED}, 60, 224),
        ({"state": LeaseState.PAUSED, "paused_by_us": True}, 60, 4),
        ({"state": LeaseState.OFFLINE, "bills": Bills.NOTHING}, 60, 224),
        ({"state": LeaseState.RELEASING, "bills": Bills.NOTHING}, 60, 0),
        ({"state": LeaseState.RUNNING}, 60, 224),
    ],
    ids=str,
)
def test_a_lease_that_nobody_saw_for_ten_minutes_owes_all_that_it_may_cost(
    changes: dict[str, Any], minutes: int, owed: float
) -> None:
    lease = builders.lease(accrued_until=builders.ago(minutes=minutes), **changes)
    today = limits.committed_by_fleet(builders.fleet(leases=(lease,))).today
    assert today.micros == pytest.approx(owed * 1000, abs=1)


@pytest.mark.parametrize(
    ("held", "kind", "price", "more"),
    [
        ({}, IntentKind.REBID, "0.304", "0.08"),
        ({}, IntentKind.REBID, "0.204", "0"),
        ({"state": LeaseState.PAUSED, "paused_by_us": True}, IntentKind.RESUME, "0.224", "0.22"),
        ({"state": LeaseState.PAUSED}, IntentKind.RESUME, "0.224", "0"),
    ],
    ids=str,
)
def test_a_doubted_order_on_a_lease_counts_as_if_it_was_done(
    held: dict[str, Any], kind: IntentKind, price: str, more: str
) -> None:
    lease = builders.lease(**held)
    doubt = builders.intent(
        9, kind=kind, lease_id=lease.lease_id, rate=builders.per_hour(price), sent_at=builders.ago(hours=1)
    )
    quiet = limits.committed_by_fleet(builders.fleet(leases=(lease,)))
    now = limits.committed_by_fleet(builders.fleet(leases=(lease,), intents=(doubt,)))
    assert now.rate == quiet.rate + builders.per_hour(more)
    assert now.today == quiet.today + builders.per_hour(more).over(3600)
    assert now.instances == quiet.instances == 1


def test_an_order_on_a_lease_that_ended_costs_nothing() -> None:
    doubt = builders.intent(kind=IntentKind.REBID, lease_id="vast-9")
    assert limits.committed_by_fleet(builders.fleet(intents=(doubt,))) == IDLE


def test_a_send_of_the_future_is_no_negative_spend() -> None:
    doubt = builders.intent(sent_at=None, recorded_at=builders.ago(minutes=-5))
    assert limits.committed_by_fleet(builders.fleet(intents=(doubt,))).today == ZERO


leases = st.builds(
    builders.lease,
    st.integers(0, 5),
    state=st.sampled_from(LeaseState),
    bills=st.sampled_from(Bills),
    paused_by_us=st.booleans(),
    accrued_until=st.integers(0, 5000).map(lambda seconds: builders.NOW - timedelta(seconds=seconds)),
)
intents = st.builds(
    builders.intent,
    st.integers(0, 9),
    kind=st.sampled_from(IntentKind),
    state=st.sampled_from(IntentState),
    lease_id=st.sampled_from(["", "vast-0", "vast-3"]),
)


@given(st.lists(leases, max_size=6, unique_by=lambda lease: lease.lease_id), st.lists(intents, max_size=4), intents)
def test_another_doubt_never_lowers_what_is_committed(held: list[Any], many: list[Any], another: Any) -> None:
    fleet: Fleet = builders.fleet(leases=tuple(held), intents=tuple(many))
    before, after = (
        limits.committed_by_fleet(fleet),
        limits.committed_by_fleet(msgspec.structs.replace(fleet, intents=(*many, another))),
    )
    assert (after.rate, after.today, after.month) >= (before.rate, before.today, before.month)
    assert after.today - before.today == after.month - before.month
    assert after.instances >= before.instances


@given(st.sampled_from(PAYING), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 5))
def test_a_looser_cap_never_strikes_what_a_tighter_one_lets_pass(
    decision: Decision, cap: int, looser: int, instances: int
) -> None:
    now = CommittedSpend(builders.per_hour("0.4"), builders.usd("0.5"), builders.usd("0.5"), 2)

    def caps(micros: int, most: int) -> Limits:
        return Limits(UsdPerHour(micros), UsdPerHour(micros), Usd(micros), Usd(micros), most)

    if not struck(decision, caps=caps(cap, instances), now=now):
        assert not struck(decision, caps=caps(cap + looser, instances + 1), now=now)
