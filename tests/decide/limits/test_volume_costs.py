"""A network volume bills past every lease: budgets count it once, in equal parts to its workloads."""

from datetime import timedelta

from agent.decide import plan
from agent.decide.limits import limits
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Spend
from agent.domain.money import ZERO
from agent.domain.record import budget
from agent.domain.record.metered_volume import MeteredVolume
from agent.domain.work.decision import Hold, Rent
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
RATE, HALF = builders.per_hour("0.50"), builders.per_hour("0.25")
SINCE = timedelta(hours=2)
NO_SPEND = Spend()


def volume(name: str = "nv1", workloads: tuple[str, ...] = ("train",), market: str = "vast") -> MeteredVolume:
    return MeteredVolume(name, builders.NOW - SINCE, RATE, workloads, market)


def committed(*volumes: MeteredVolume, spend: Spend = NO_SPEND) -> limits.CommittedSpend:
    of_workload = {budget.of_workload("train"): spend}
    named = {each.name: each for each in volumes}
    return limits.committed_by_fleet(builders.fleet(volumes=named, spend=spend, spend_of=of_workload))


def test_a_volume_counts_at_its_rate_and_since_its_last_metering_in_every_budget() -> None:
    paid = Spend(builders.usd("1"), builders.usd("2"), builders.usd("30"))
    found, owed = committed(volume(), spend=paid), RATE.over(SINCE.total_seconds())
    assert (found.rate, found.instances) == (RATE, 0)
    assert (found.today, found.month, found.total) == (paid.today + owed, paid.month + owed, paid.total + owed)
    mine = found.of(budget.of_workload("train"))
    assert (mine.rate, mine.total) == (RATE, paid.total + owed)
    assert (found.of(budget.of_market("vast")).rate, found.of(budget.of_market("vast")).total) == (RATE, owed)


def test_a_volume_of_two_workloads_counts_once_and_half_in_each() -> None:
    found = committed(volume(workloads=("a", "b")), volume("nv2", ("c",), ""), volume("nv3", ()))
    assert found.rate == RATE + RATE
    assert {name: found.of(budget.of_workload(name)).rate for name in "abcd"} == {
        "a": HALF,
        "b": HALF,
        "c": RATE,
        "d": builders.per_hour(0),
    }
    assert found.of(budget.of_market("vast")).rate == RATE


def test_a_cap_leaves_only_what_the_volume_does_not_take() -> None:
    fleet = builders.fleet(volumes={"nv1": volume()}, markets={"vast": builders.view(offers=(builders.offer(),))})
    (rent,) = plan.plan(fleet, TUNED, Limits(per_hour=builders.per_hour("0.80"))).decisions
    assert isinstance(rent, Rent)
    (hold,) = plan.plan(fleet, TUNED, Limits(per_hour=builders.per_hour("0.60"))).decisions
    assert isinstance(hold, Hold)
    assert hold.reason.limit == "per_hour"


def test_a_budget_over_the_whole_time_has_it() -> None:
    found = committed(volume())
    assert limits.over_budget(found, Limits(total=builders.usd("1"))) is not None
    assert limits.over_budget(found, Limits(total=builders.usd("1.01"))) is None
    assert found.total != ZERO
