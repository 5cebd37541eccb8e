"""Budgets of everything, of a market and of a workload: each strikes, reserves and pauses within its own scope."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.facts import Marked
from agent.decide.limits import budget_alerts, cap_endings, limits
from agent.decide.limits import committed_spend as standings
from agent.decide.limits.limits import Limits
from agent.decide.operators import reload
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO, Usd
from agent.domain.record import budget
from agent.domain.record.budget import EVERYTHING, Budget, Scope, Thresholds
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.decision import Decision, Pause, Reason, Release, Rent
from agent.observe import snapshot
from tests.support import builders

WHY = Reason("code", "sentence")
TRAIN, SERVE = budget.of_workload("train"), budget.of_workload("serve")
VAST, RUNPOD = budget.of_market("vast"), budget.of_market("runpod")
DAY = builders.usd(1)


def rent(workload: str = "train", number: int = 9, market: str = "vast") -> Rent:
    offer = builders.offer(number, market=market, traffic_down_micros_per_gb=0)
    bid = builders.per_hour("0.22")
    return Rent(Slot(workload, 0), offer, Tenure.INTERRUPTIBLE, bid, builders.per_hour("0.224"), WHY)


def fleet(**changes: Any) -> Fleet:
    """Build a fleet with one lease of each workload, of `train` on vast and of `serve` on runpod."""
    values: dict[str, Any] = {
        "workloads": (builders.workload("train"), builders.workload("serve", priority=5)),
        "markets": {"vast": builders.view(), "runpod": builders.view(market="runpod")},
        "leases": (
            builders.lease(1, slot=Slot("train", 0)),
            builders.lease(2, slot=Slot("serve", 0), market="runpod"),
        ),
    }
    return builders.fleet(**{**values, **changes})


def of(scope: Scope, **thresholds: Any) -> Limits:
    """Build limits of one scope."""
    hard = Thresholds(**thresholds)
    if scope == EVERYTHING:
        return Limits(per_hour=hard.per_hour, per_day=hard.per_day, per_month=hard.per_month, total=hard.total)
    return Limits(budgets={scope: Budget(hard)})


def struck(decision: Decision, seen: Fleet, caps: Limits) -> str:
    found = limits.strike(decision, seen, limits.committed_by_fleet(seen), caps, ())
    return found.limit if found else ""


@pytest.mark.parametrize(("scope", "name"), [(EVERYTHING, ""), (TRAIN, "workload_"), (VAST, "market_")], ids=str)
@pytest.mark.parametrize("window", ["per_day", "per_month", "total"])
def test_a_spent_budget_strikes_its_scope_and_no_other(scope: Scope, name: str, window: str) -> None:
    spent = Spend(DAY, DAY, DAY)
    seen = fleet(spend=spent, spend_of={TRAIN: spent, VAST: spent})
    caps = of(scope, **{window: DAY})
    assert struck(rent("train"), seen, caps) == name + window
    elsewhere = struck(rent("serve", market="runpod"), seen, caps)
    assert elsewhere == (window if scope == EVERYTHING else "")


@pytest.mark.parametrize("scope", [EVERYTHING, TRAIN, VAST], ids=str)
def test_a_rate_is_capped_within_its_scope_after_the_move(scope: Scope) -> None:
    seen = fleet()
    held = limits.committed_by_fleet(seen).of(scope).rate
    exact = of(scope, per_hour=held + rent().rate)
    assert struck(rent(), seen, exact) == ""
    assert struck(rent(), seen, of(scope, per_hour=held + rent().rate - builders.per_hour("0.000001"))).endswith(
        "per_hour"
    )


@pytest.mark.parametrize("scope", [EVERYTHING, TRAIN, VAST], ids=str)
@pytest.mark.parametrize("window", ["per_day", "per_month", "total"])
def test_what_a_rent_may_cost_over_the_horizon_must_fit(scope: Scope, window: str) -> None:
    """Committed spend is reserved too: two leases of one budget may not each count on the same dollar."""
    seen = fleet()
    part = limits.committed_by_fleet(seen).of(scope)
    needed = (part.rate + rent().rate).over(7200)
    caps = replace(of(scope, **{window: needed}), reserve=timedelta(hours=2))
    assert struck(rent(), seen, caps) == ""
    tight = replace(of(scope, **{window: needed - Usd(1)}), reserve=timedelta(hours=2))
    assert struck(rent(), seen, tight).endswith(window)


@pytest.mark.parametrize("scope", [EVERYTHING, TRAIN, VAST], ids=str)
@pytest.mark.parametrize(
    ("window", "spent"), [("per_day", "1"), ("per_month", "2"), ("total", "3")], ids=["day", "month", "total"]
)
def test_each_window_bears_its_own_sum(scope: Scope, window: str, spent: str) -> None:
    """Not that of a longer one: the reserve, the veto and the report count the same sum."""
    sums = Spend(builders.usd(1), builders.usd(2), builders.usd(3))
    seen = fleet(leases=(), spend=sums, spend_of={TRAIN: sums, VAST: sums})
    held = rent().rate.over(3600)
    cap: dict[str, Any] = {window: builders.usd(spent) + held}
    hour = timedelta(hours=1)
    assert struck(rent(), seen, replace(of(scope, **cap), reserve=hour)) == ""
    tight: dict[str, Any] = {window: builders.usd(spent) + held - Usd(1)}
    strike = limits.strike(rent(), seen, limits.committed_by_fleet(seen), replace(of(scope, **tight), reserve=hour), ())
    assert strike is not None
    whose = {"per_day": "today's", "per_month": "this month's", "total": "the whole"}[window]
    of_whom = f" of {scope}" if scope.name else ""
    assert strike.sentence == (
        f"{whose} committed spend{of_whom} ${spent}.0000 and {held} set aside for commitments "
        f"would pass the cap of {tight[window]}"
    )
    whole: dict[str, Any] = {window: builders.usd(spent)}
    [mark] = budget_alerts.crossings(seen, limits.committed_by_fleet(seen), of(scope, **whole))
    assert isinstance(mark, Marked)
    assert mark.record.ground == f"${spent}.0000 of ${spent}.0000"
    more: dict[str, Any] = {window: builders.usd(spent) + Usd(1)}
    assert list(budget_alerts.crossings(seen, limits.committed_by_fleet(seen), of(scope, **more))) == []
    double: dict[str, Any] = {window: builders.usd(2 * int(spent))}
    assert [share for _, share in budget_alerts.used(limits.committed_by_fleet(seen), of(scope, **double))] == [0.5]


def test_the_horizon_ends_with_the_day_and_the_month() -> None:
    late = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    leases = tuple(msgspec.structs.replace(lease, accrued_until=late) for lease in fleet().leases)
    seen = fleet(now=late, leases=leases)
    minute = (limits.committed_by_fleet(seen).rate + rent().rate).over(60)
    hours = timedelta(hours=5)
    assert struck(rent(), seen, Limits(per_day=minute, per_month=minute, reserve=hours)) == ""
    assert struck(rent(), seen, Limits(total=minute, reserve=hours)) == "total"


def test_traffic_under_way_is_set_aside() -> None:
    work = builders.workload("train", image_gb=10.0)
    dear = replace(rent(), offer=builders.offer(9, traffic_down_micros_per_gb=20_000))
    seen = fleet(workloads=(work,), leases=())
    needed = dear.rate.over(3600) + builders.usd("0.20")
    hour = timedelta(hours=1)
    assert struck(dear, seen, Limits(per_day=needed, reserve=hour)) == ""
    assert struck(dear, seen, Limits(per_day=needed - Usd(1), reserve=hour)) == "per_day"
    row = builders.instance(1, state=InstanceState.LOADING, traffic_down_micros_per_gb=20_000, traffic_down_gb=4.0)
    loads = builders.lease(1, state=LeaseState.STARTING, traffic_down_gb=4.0)
    loading = fleet(workloads=(work,), leases=(loads,), markets={"vast": builders.view(instances=(row,))})
    assert limits.committed_by_fleet(loading).pledged == builders.usd("0.12")


def test_a_credit_floor_is_kept_on_its_market_and_for_the_horizon() -> None:
    markets = {"vast": builders.view(credit=builders.usd("5.5")), "runpod": builders.view(market="runpod")}
    seen = fleet(markets=markets, leases=())
    floor = Limits(min_credit=builders.usd(5))
    assert struck(rent(), seen, floor) == ""
    assert struck(rent(), seen, replace(floor, reserve=timedelta(hours=2))) == ""
    assert struck(rent(), seen, replace(floor, reserve=timedelta(hours=3))) == "credit_floor"
    assert struck(rent("serve", market="runpod"), seen, replace(floor, reserve=timedelta(hours=3))) == ""
    assert struck(rent(), seen, replace(floor, min_credit_of={"vast": builders.usd(6)})) == "credit_floor"


def test_a_floor_over_an_unknown_credit_strikes_nothing() -> None:
    seen = fleet(markets={"vast": builders.view(credit=None)})
    assert struck(rent(), seen, Limits(min_credit=builders.usd(5), reserve=timedelta(hours=1))) == ""


def ended(seen: Fleet, caps: Limits) -> list[tuple[str, str]]:
    found = cap_endings.endings(seen, limits.committed_by_fleet(seen), caps)
    return [(type(order).__name__.lower(), order.lease.slot.workload) for order in found]


def test_a_spent_budget_pauses_its_scope_only_and_least_first() -> None:
    spent = {TRAIN: Spend(DAY), SERVE: Spend(DAY), RUNPOD: Spend(DAY)}
    seen = fleet(spend=Spend(DAY), spend_of=spent)
    assert ended(seen, of(TRAIN, per_day=DAY)) == [("pause", "train")]
    assert ended(seen, of(RUNPOD, per_day=DAY)) == [("pause", "serve")]
    assert ended(seen, of(EVERYTHING, per_day=DAY)) == [("pause", "train"), ("pause", "serve")]


def test_a_market_at_its_credit_floor_is_paused() -> None:
    markets = {"vast": builders.view(credit=builders.usd(5)), "runpod": builders.view(market="runpod")}
    floor = Limits(min_credit=builders.usd(5))
    assert ended(fleet(markets=markets), floor) == [("pause", "train")]
    paused = builders.lease(1, state=LeaseState.PAUSED, paused_by_us=True)
    assert ended(fleet(markets=markets, leases=(paused,)), floor) == [("release", "train")]


def test_what_a_narrow_rate_pauses_is_no_burden_on_the_wide_one() -> None:
    seen = fleet()
    one = seen.leases[0].committed_rate + seen.leases[0].disk_rate
    caps = replace(of(SERVE, per_hour=builders.per_hour("0.1")), per_hour=one)
    assert ended(seen, caps) == [("pause", "serve")]


def test_a_paused_disk_goes_on_counting() -> None:
    paused = builders.lease(1, state=LeaseState.PAUSED, paused_by_us=True, accrued_until=builders.ago(hours=1))
    seen = fleet(leases=(paused,), spend=Spend(DAY), spend_of={TRAIN: Spend(DAY)})
    now = limits.committed_by_fleet(seen)
    assert now.of(TRAIN).today == DAY + paused.disk_rate.over(3600)
    assert now.of(TRAIN).rate == paused.disk_rate
    assert ended(seen, of(TRAIN, per_day=DAY)) == [("release", "train")]


def test_a_renamed_workload_keeps_what_it_spent() -> None:
    work = builders.workload("new", was="train")
    found = snapshot.renamed({TRAIN: Spend(DAY, DAY, DAY)}, (work,))
    assert found[budget.of_workload("new")] == Spend(DAY, DAY, DAY)


@pytest.mark.parametrize(
    ("scope", "key"), [(TRAIN, "workloads.train.budget.max_per_day"), (VAST, "markets.vast.budget.max_per_day")]
)
def test_a_budget_lowered_under_what_is_spent_is_refused(scope: Scope, key: str) -> None:
    seen = fleet(spend_of={scope: Spend(DAY)})
    after = reload.After(seen.workloads, frozenset(seen.markets), of(scope, per_day=DAY))
    standing = limits.committed_by_fleet(seen)
    found = reload.findings(after, seen.leases, standing, Limits())
    assert [(each.key, each.is_refusal) for each in found] == [(key, True)]
    assert not reload.findings(after, seen.leases, standing, of(scope, per_day=DAY))


leases = st.builds(
    builders.lease,
    st.integers(0, 9),
    slot=st.builds(Slot, st.sampled_from(["train", "serve"]), st.integers(0, 1)),
    market=st.sampled_from(["vast", "runpod"]),
    state=st.sampled_from([LeaseState.RUNNING, LeaseState.STARTING, LeaseState.PAUSED]),
    paused_by_us=st.booleans(),
    accrued_until=st.integers(0, 5000).map(lambda seconds: builders.NOW - timedelta(seconds=seconds)),
)


@given(st.lists(leases, max_size=6, unique_by=lambda lease: lease.lease_id), st.lists(st.booleans(), max_size=3))
def test_the_parts_add_up_to_the_whole(held: list[Any], moves: list[bool]) -> None:
    now = standings.committed_by_fleet(fleet(leases=tuple(held)))
    for number, is_rent in enumerate(moves):
        paused: Decision = Pause(held[0], WHY) if held else Release(builders.lease(), WHY)
        now = now.after(rent(number=number) if is_rent else paused)
    for scopes in ((TRAIN, SERVE), (VAST, RUNPOD)):
        parts = [now.of(scope) for scope in scopes]
        assert sum(part.rate.micros for part in parts) == now.rate.micros
        assert sum(part.today.micros for part in parts) == now.today.micros
        assert sum(part.instances for part in parts) == now.instances
    assert now.of(budget.of_workload("nobody")).today == ZERO
