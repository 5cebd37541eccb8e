"""A network volume bills past every lease: budgets count it once, by its owner's figure."""

from dataclasses import replace
from typing import Any

from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.domain.money import ZERO
from agent.domain.record import budget
from agent.domain.work.decision import Hold, Rent
from agent.domain.work.workload import Requirements, Workload
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
RATE = builders.per_hour("0.50")


def work(name: str = "train", volume: str = "nv1", **changes: Any) -> Workload:
    made = builders.workload(name, markets=("vast",), network_volume_rate=RATE, **changes)
    return replace(made, requirements=Requirements(network_volume=volume))


def committed(*works: Workload) -> limits.CommittedSpend:
    return limits.committed_by_fleet(builders.fleet(workloads=works))


def test_a_volume_counts_since_the_day_and_the_month_began_and_at_its_rate() -> None:
    found = committed(work())
    since = builders.NOW - budget.day(builders.NOW)
    assert found.rate == RATE
    assert found.today == RATE.over(since.total_seconds())
    month = builders.NOW - budget.month(builders.NOW)
    assert (found.month, found.total, found.instances) == (RATE.over(month.total_seconds()), ZERO, 0)
    for scope in (budget.of_market("vast"), budget.of_workload("train")):
        assert (found.of(scope).rate, found.of(scope).today) == (found.rate, found.today)


def test_a_volume_of_two_workloads_counts_once_and_whole_in_each() -> None:
    found = committed(work("a"), work("b"), work("c", "nv2"), builders.workload("d"))
    assert found.rate == RATE + RATE
    assert {name: found.of(budget.of_workload(name)).rate for name in "abcd"} == {
        "a": RATE,
        "b": RATE,
        "c": RATE,
        "d": builders.per_hour(0),
    }


def test_a_cap_leaves_only_what_the_volume_does_not_take() -> None:
    offer = builders.offer(network_volumes=("nv1",))
    fleet = builders.fleet(workloads=(work(),), markets={"vast": builders.view(offers=(offer,))})
    (rent,) = plan.plan(fleet, TUNED, Limits(per_hour=builders.per_hour("0.80"))).decisions
    assert isinstance(rent, Rent)
    (hold,) = plan.plan(fleet, TUNED, Limits(per_hour=builders.per_hour("0.60"))).decisions
    assert isinstance(hold, Hold)
    assert hold.reason.limit == "per_hour"
