"""The value of an hour as a share of the on-demand price."""

from typing import Any

import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.decide.pricing.worth import work_value
from agent.domain.fleet import Fleet
from agent.domain.market.tenure import Tenure
from agent.domain.work.decision import Rent
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import Patient, PatientParams
from tests.support import builders

ASKS = ("0.30", "0.40", "0.50", "0.90")
TUNED = {
    "patient": builders.tuned(Patient(), PatientParams()),
    "hedged": builders.tuned(Hedged(), HedgedParams()),
}


def fleet(share: float | None, *asks: str, sampled: tuple[str, ...] = (), **changes: Any) -> Fleet:
    offers, sample = (
        tuple(builders.offer(number, ask=builders.per_hour(ask), floor=None) for number, ask in enumerate(each))
        for each in (asks, sampled)
    )
    work = builders.workload(value_share=share, disk_gb=0.0, **changes)
    return builders.fleet(workloads=(work,), markets={"vast": builders.view(offers=offers, sample=sample)})


def value(seen: Fleet) -> float | None:
    (work,) = work_value.resolved(seen).workloads
    return None if work.value_per_hour is None else work.value_per_hour.dollars


def test_the_price_is_the_mean_of_the_three_lowest_asks_that_fit() -> None:
    assert value(fleet(0.5, *ASKS)) == pytest.approx(0.2)
    assert value(fleet(2.0, "0.30")) == pytest.approx(0.6)


def test_the_last_sample_counts_without_offers_and_nothing_without_any_ask() -> None:
    assert value(fleet(0.5, sampled=ASKS)) == pytest.approx(0.2)
    assert value(fleet(0.5)) is None
    assert value(fleet(None, *ASKS)) is None


@pytest.mark.parametrize("strategy", ["patient", "hedged"])
@pytest.mark.parametrize(("share", "rents"), [(0.5, False), (1.25, True)])
def test_on_demand_is_rented_as_soon_as_an_hour_is_worth_it(strategy: str, share: float, rents: bool) -> None:
    seen = fleet(share, "0.40", "0.40", "0.40", strategy=strategy)
    (decision,) = plan.plan(seen, TUNED, Limits()).decisions
    assert isinstance(decision, Rent) is rents
    if isinstance(decision, Rent):
        assert decision.tenure is Tenure.ON_DEMAND


@pytest.mark.parametrize("strategy", ["patient", "hedged"])
def test_no_value_pays_more_than_the_highest_price(strategy: str) -> None:
    seen = fleet(5.0, "0.40", strategy=strategy, max_price=builders.per_hour("0.39"))
    (decision,) = plan.plan(seen, TUNED, Limits()).decisions
    assert not isinstance(decision, Rent)


@pytest.mark.parametrize(("number", "valued", "plain"), [("auto", 1.0, 0.6), (0.3, 0.3, 0.3)])
def test_a_number_that_is_set_outranks_the_value(number: Any, valued: float, plain: float) -> None:
    worth = builders.workload(value_per_hour=builders.per_hour("0.50"))
    assert work_value.share(number, worth, 0.6) == valued
    assert work_value.share(number, builders.workload(), 0.6) == plain
