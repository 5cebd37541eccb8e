"""If a budget and a deadline collide, the operator is warned before it happens."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.limits import limits, risk
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet, Spend
from agent.domain.market.tenure import Tenure
from agent.domain.record import budget
from agent.domain.record.budget import Budget, Thresholds
from agent.domain.work.deadline import Deadline, Progress
from tests.support import builders

NOW = builders.NOW
RATE = 0.40 + builders.offer().disk_rate(builders.workload().disk_gb).dollars
WORK, MARKET = budget.of_workload("train"), budget.of_market("vast")


def fleet(*, left: float = 100.0, done: float = 0.0, ask: str = "0.40", **changes: Any) -> Fleet:
    work = builders.workload(deadline=Deadline(40.0, NOW + timedelta(hours=left)), **changes.pop("work", {}))
    offers = (builders.offer(ask=builders.per_hour(ask)),)
    values: dict[str, Any] = {
        "workloads": (work,),
        "markets": {"vast": builders.view(offers=changes.pop("offers", offers), credit=changes.pop("credit", None))},
        "progress": {"train": Progress("train", done, NOW, NOW)},
    }
    return builders.fleet(**{**values, **changes})


def keys(seen: Fleet, caps: Limits | None = None) -> list[str]:
    found = risk.risks(seen, caps or limits.Limits(), {})
    return [alert.key for alert in found.get("train", ())]


def test_a_deadline_that_every_cap_allows_is_at_no_risk() -> None:
    roomy = Limits(builders.per_hour(1), builders.per_hour(1), builders.usd(20), builders.usd(50), 2)
    assert keys(fleet(credit=builders.usd(50)), roomy) == []


def test_what_holds_no_slot_is_put_aside_and_at_no_risk() -> None:
    poor = Limits(per_day=builders.usd("0.01"))
    assert keys(fleet(), poor)
    assert keys(fleet(work={"slots": 0}), poor) == []


@pytest.mark.parametrize(
    ("caps", "key"),
    [
        ({"per_instance_hour": builders.per_hour("0.30")}, "train/per_instance_hour"),
        ({"per_hour": builders.per_hour("0.30")}, "train/per_hour"),
        ({"per_day": builders.usd(3)}, "train/per_day"),
        ({"per_month": builders.usd(15)}, "train/per_month"),
        ({"total": builders.usd(15)}, "train/total"),
        ({"budgets": {WORK: Budget(Thresholds(per_day=builders.usd(3)))}}, "train/workload_per_day"),
        ({"budgets": {MARKET: Budget(Thresholds(per_hour=builders.per_hour("0.3")))}}, "train/market_per_hour"),
        ({"min_credit": builders.usd(45)}, "train/credit"),
    ],
)
def test_each_cap_that_leaves_too_little_is_named(caps: dict[str, Any], key: str) -> None:
    assert keys(fleet(credit=builders.usd(50)), Limits(**caps)) == [key]


def test_a_cap_that_is_full_again_tomorrow_pays_for_tomorrow() -> None:
    spent = Spend(builders.usd(10), builders.usd(10))
    assert keys(fleet(spend=spent), Limits(per_day=builders.usd(10))) == []
    assert keys(fleet(spend=spent, left=45.0), Limits(per_day=builders.usd(10))) == ["train/per_day"]


@pytest.mark.parametrize(
    ("window", "spent", "hours"),
    [
        # Of two dollars, from noon on 20 November to noon on the 25th: the remainder today, then each day anew.
        ("per_day", "1.192", (0.808 + 5 * 2) / RATE),
        ("per_day", "5", 5 * 2 / RATE),
        ("per_month", "1.192", 0.808 / RATE),
        ("total", "1.192", 0.808 / RATE),
    ],
)
def test_how_many_hours_a_cap_still_pays_for(window: str, spent: str, hours: float) -> None:
    """A month and a total are not full again before the deadline, a day is at each midnight."""
    cap: dict[str, Any] = {window: builders.usd(2)}
    amount = builders.usd(spent)
    seen = fleet(left=5 * 24, spend=Spend(amount, amount, amount))
    [alert] = risk.risks(seen, Limits(**cap), {})["train"]
    assert f"and the cap of $2.0000 leaves {hours:.1f} h until then" in alert.sentence


def test_a_month_s_cap_is_full_again_with_the_next_month() -> None:
    spent = Spend(builders.usd(0), builders.usd(20), builders.usd(20))
    caps = Limits(per_month=builders.usd(20))
    assert keys(fleet(left=10 * 24, spend=spent), caps) == ["train/per_month"]
    assert keys(fleet(left=14 * 24, spend=spent), caps) == []


def test_what_costs_nothing_is_paid_for_by_any_cap() -> None:
    free = (builders.offer(ask=builders.per_hour(0), storage_micros_per_gb_month=0),)
    assert keys(fleet(offers=free), Limits(per_day=builders.usd(1))) == []


def test_credit_time_and_the_workload_s_own_price_are_looked_at_too() -> None:
    assert keys(fleet(credit=builders.usd(5))) == ["train/credit"]
    assert keys(fleet(left=39.0)) == ["train/time"]
    assert keys(fleet(ask="1.20")) == ["train/max_price"]


def own(**changes: Any) -> Any:
    """Build the running on-demand lease of the work itself, at 0.40 and 0.004 an hour."""
    rate = builders.per_hour("0.40")
    return builders.lease(6, **{"tenure": Tenure.ON_DEMAND, "gpu_rate": rate, "ask": rate, **changes})


def test_what_runs_on_demand_already_is_the_worst_case_at_its_own_price() -> None:
    """No other start, no other price: the remaining work at the price of its lease."""
    dear = own(gpu_rate=builders.per_hour("0.60"))
    caps = Limits(total=builders.usd(20))
    [alert] = risk.risks(fleet(leases=(dear,)), caps, {})["train"]
    assert "finishing on demand takes 40.0 h and $24.1600, and the cap of $20.0000 leaves 33.1 h" in alert.sentence
    assert keys(fleet(leases=(own(),)), caps) == []


def test_what_the_work_itself_costs_now_is_not_counted_twice_and_what_others_cost_shortens_a_cap() -> None:
    other = builders.lease(5, slot=builders.slot("serve"), tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.40"))
    alone, shared = fleet(leases=(own(),)), fleet(leases=(own(), other))
    rate = Limits(per_hour=builders.per_hour("0.404"))
    assert (keys(alone, rate), keys(shared, rate)) == ([], ["train/per_hour"])
    [tight] = risk.risks(shared, rate, {})["train"]
    assert "on-demand costs $0.4040/h, others $0.4040/h, and $0.4040/h are allowed" in tight.sentence
    total = Limits(total=builders.usd("16.16"))
    assert keys(alone, total) == []
    [halved] = risk.risks(shared, total, {})["train"]
    assert "and the cap of $16.1600 leaves 20.0 h until then" in halved.sentence


@pytest.mark.parametrize("scope", [WORK, MARKET], ids=str)
def test_a_narrow_budget_counts_only_what_is_its_own(scope: budget.Scope) -> None:
    elsewhere = builders.lease(5, slot=builders.slot("serve"), market="runpod", gpu_rate=builders.per_hour(9))
    mine = own(market="vast")
    caps = Limits(budgets={scope: Budget(Thresholds(per_hour=builders.per_hour("0.404")))})
    assert keys(fleet(leases=(mine, elsewhere)), caps) == []


def test_a_deadline_that_time_alone_forbids_cannot_be_met_by_money() -> None:
    [alert] = risk.risks(fleet(left=39.0), Limits(), {})["train"]
    assert alert.code == "deadline_at_risk"
    assert alert.sentence.endswith(
        "cannot be met: on-demand takes 40.4 h and 39.0 h are left; ask for less or later; `gpubid reload` "
        "applies a changed file"
    )


@given(minutes=st.integers(1, 40 * 60), seconds=st.floats(0.0, 60.0))
def test_a_roomy_cap_is_not_blamed_for_a_deadline_that_time_forbids(minutes: int, seconds: float) -> None:
    """The hours of a window are added up day by day, and are no longer or shorter for it."""
    roomy = Limits(per_day=builders.usd(84), per_month=builders.usd(750), total=builders.usd(900))
    assert keys(fleet(left=minutes / 60 + seconds / 3600), roomy) == ["train/time"]


def test_what_the_rest_of_the_fleet_costs_counts() -> None:
    other = builders.lease(5, slot=builders.slot("serve"), tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.80"))
    assert keys(fleet(leases=(other,)), Limits(per_hour=builders.per_hour(1))) == ["train/per_hour"]


def test_without_a_price_what_was_found_before_stands_and_work_that_is_done_is_forgotten() -> None:
    before = risk.risks(fleet(left=39.0), Limits(), {})
    assert risk.risks(fleet(left=38.0, offers=()), Limits(), before) == before
    assert risk.risks(fleet(left=38.0, done=40.0), Limits(), before) == {}


def test_the_sentence_says_what_to_do() -> None:
    (alert,) = risk.risks(fleet(), Limits(per_day=builders.usd(3)), {})["train"]
    assert "is at risk by per_day" in alert.sentence
    assert "the cap wins" in alert.sentence
