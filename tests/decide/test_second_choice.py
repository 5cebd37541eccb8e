"""Where a cap on rates forbids the start that a strategy chose, it chooses again among what the cap leaves."""

from typing import Any

import pytest

from agent import strategy_files
from agent.decide.limits.limits import Limits
from agent.domain.record import budget
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Decision, Hold, Rent
from tests.decide.test_plan import market, planned
from tests.support import builders

GOOD = builders.offer(1)
"""The work of a dollar is most here, at a bid of $0.20 and more."""
CHEAP = builders.offer(2, dlperf=30.0, floor=builders.per_hour("0.10"), ask=builders.per_hour("0.17"))
CHEAPER = builders.offer(3, dlperf=25.0, floor=builders.per_hour("0.09"), ask=builders.per_hour("0.19"))
LOW = builders.per_hour("0.18")


def rented(caps: Limits, *offers: Any, **changes: Any) -> list[str]:
    """Return the offers that a plan rents, and the limits of its holds."""
    return list(map(_said, planned(caps, strategy_files.load(), markets=market(*offers), **changes).decisions))


def _said(decision: Decision) -> str:
    if isinstance(decision, Rent):
        return decision.offer.offer_id
    assert isinstance(decision, Hold)
    return decision.reason.limit or decision.reason.code


@pytest.mark.parametrize(
    "caps",
    [
        Limits(per_hour=LOW),
        Limits(per_instance_hour=LOW),
        Limits(budgets={budget.of_workload("train"): budget.Budget(hard=budget.Thresholds(per_hour=LOW))}),
        Limits(budgets={budget.of_market("vast"): budget.Budget(hard=budget.Thresholds(per_hour=LOW))}),
    ],
    ids=["the fleet's", "an instance's", "a workload's", "a market's"],
)
@pytest.mark.parametrize("strategy", ["patient", "ondemand", "hedged"])
def test_a_strategy_chooses_again_where_a_cap_on_a_rate_forbids_its_choice(caps: Limits, strategy: str) -> None:
    works = (builders.workload(strategy=strategy),)
    assert rented(Limits(), GOOD, CHEAP, workloads=works) == ["a1"]
    assert rented(caps, GOOD, CHEAP, workloads=works) == ["a2"]


def test_without_a_second_offer_the_hold_names_the_cap() -> None:
    assert rented(Limits(per_hour=LOW), GOOD) == ["per_hour"]
    assert rented(Limits(per_hour=builders.per_hour("0.05")), GOOD, CHEAP) == ["per_hour"]


def test_another_limit_gives_no_second_choice() -> None:
    assert rented(Limits(instances=0), GOOD, CHEAP) == ["instances"]


def test_second_choices_come_after_all_first_ones_on_hosts_of_their_own_and_within_the_cap() -> None:
    work = builders.workload(slots=4)
    caps = Limits(per_hour=builders.per_hour("0.45"))
    found = rented(caps, GOOD, CHEAP, CHEAPER, builders.offer(4), workloads=(work,))
    assert len(found) == 4
    taken = [each for each in found if each != "per_hour"]
    assert len(taken) == len(set(taken))
    assert "per_hour" in found
    made = planned(caps, workloads=(work,), markets=market(GOOD, CHEAP, CHEAPER, builders.offer(4)))
    assert made.standing.rate <= builders.per_hour("0.45")


def test_a_lease_that_runs_is_not_moved_to_a_second_choice() -> None:
    lost = builders.lease(9, state=LeaseState.PAUSED, slot=builders.slot("train", 1))
    runs = builders.lease(8)
    work = builders.workload(slots=2)
    rate = runs.committed_rate + lost.committed_rate
    made = planned(Limits(per_hour=rate), workloads=(work,), leases=(runs, lost), markets=market(GOOD, CHEAP))
    assert [each for each in made.decisions if isinstance(each, Rent) and each.slot == runs.slot] == []
