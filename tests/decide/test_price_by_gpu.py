"""A price of its own for a GPU model: no bid and no rent above it, on any strategy, and none lower for other models."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from agent.decide.pricing import funnel, offer_refusal, offer_terms
from agent.decide.strategy import Proposal, Tuned, View
from agent.domain.market import gpu
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.deadline import Deadline
from agent.domain.work.decision import Decision, Hold, Reason, Rebid, Rent, raises_spend, slot_of
from agent.domain.work.workload import MaxPrice, Workload, WorkloadKind
from strategies.deadline import Deadline as DeadlineStrategy
from strategies.deadline import DeadlineParams
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support import builders

SLOW, FAST, OTHER = gpu.model("RTX 3090"), gpu.model("H100 SXM"), builders.RTX_4090
BY_GPU = ((SLOW, builders.per_hour("0.15")), (FAST, builders.per_hour("2.10")))
ANY = builders.requirements(gpu_models=())
TUNED = {
    "patient": builders.tuned(Patient(), PatientParams()),
    "hedged": builders.tuned(Hedged(), HedgedParams(), "hedged"),
    "warm": builders.tuned(Hedged(), HedgedParams(keep_warm=True), "warm"),
    "ondemand": builders.tuned(OnDemand(), OnDemandParams(), "ondemand"),
    "deadline": builders.tuned(DeadlineStrategy(), DeadlineParams(), "deadline"),
}


def work(**changes: Any) -> Workload:
    return builders.workload(**{"max_price_by_gpu": BY_GPU, "requirements": ANY, **changes})


def test_a_model_has_its_own_price_and_others_the_common_one() -> None:
    prices = work().prices
    assert [prices.of(model).dollars for model in (SLOW, FAST, OTHER)] == [0.15, 2.1, 1.0]
    assert prices.highest.dollars == 2.1
    assert prices.scaled(0.5).of(SLOW).dollars == 0.075
    assert work(max_price_by_gpu=()).prices.highest.dollars == 1.0


def test_a_price_of_its_own_is_not_lowered_for_a_slow_card() -> None:
    """The operator has said what an hour on that card is worth; only the common price counts by speed."""
    prices = MaxPrice(builders.per_hour("1.00"), BY_GPU)
    slow = builders.offer(gpu=SLOW, dlperf=8.0, floor=builders.per_hour("0.10"), ask=builders.per_hour("0.14"))
    other = builders.offer(2, dlperf=8.0, floor=builders.per_hour("0.10"), ask=builders.per_hour("0.14"))
    for way in (offer_terms.Asks(prices, 20.0, 100.0), offer_terms.Bids(prices, 20.0, 0.0, 1.0, 100.0)):
        assert way(slow)
        assert not way(other)


@pytest.mark.parametrize("strategy", sorted(TUNED))
@pytest.mark.parametrize(("model", "floor", "ask", "rents"), [
    (SLOW, "0.16", "0.20", False),
    (SLOW, "0.08", "0.09", True),
    (FAST, "1.10", "1.20", True),
    (FAST, "2.20", "2.30", False),
    (OTHER, "1.10", "1.20", False),
    (OTHER, "0.30", "0.40", True),
])  # fmt: skip
def test_each_strategy_rents_within_the_price_of_the_model(
    strategy: str, model: gpu.GpuModel, floor: str, ask: str, rents: bool
) -> None:
    offer = builders.offer(gpu=model, floor=builders.per_hour(floor), ask=builders.per_hour(ask))
    late = Deadline(hours=1.0, by=builders.NOW + timedelta(hours=1, minutes=30))
    wanted = work(strategy=strategy, kind=WorkloadKind.BATCH, deadline=late if strategy == "deadline" else None)
    fleet = builders.fleet(workloads=(wanted,), markets={"vast": builders.view(offers=(offer,))})
    (made,) = plan.plan(fleet, TUNED, Limits()).decisions
    assert isinstance(made, Rent) is rents, made


offers = st.builds(
    lambda number, model, **changes: builders.offer(number, host_id=f"h{number}", gpu=model, **changes),
    st.integers(0, 20),
    st.sampled_from([SLOW, FAST, OTHER]),
    floor=st.none() | st.builds(UsdPerHour, st.integers(10_000, 3_000_000)),
    ask=st.none() | st.builds(UsdPerHour, st.integers(10_000, 3_000_000)),
    dlperf=st.sampled_from([0.0, 30.0, 80.0, 400.0]),
)


@settings(max_examples=80)
@given(
    strategy=st.sampled_from(sorted(TUNED)),
    by_gpu=st.dictionaries(
        st.sampled_from([SLOW, FAST, OTHER]), st.builds(UsdPerHour, st.integers(20_000, 2_500_000)), max_size=3
    ),
    rows=st.lists(offers, max_size=8),
    state=st.sampled_from([None, LeaseState.PAUSED, LeaseState.RUNNING]),
    held=st.sampled_from([SLOW, FAST, OTHER]),
    rate=st.builds(UsdPerHour, st.integers(20_000, 2_500_000)),
    rival=st.builds(UsdPerHour, st.integers(20_000, 2_500_000)),
)
def test_nothing_is_paid_above_the_price_of_the_model(
    strategy: str, by_gpu: dict[gpu.GpuModel, UsdPerHour], rows: list[Any], state: LeaseState | None,
    held: gpu.GpuModel, rate: UsdPerHour, rival: UsdPerHour,
) -> None:  # fmt: skip
    wanted = work(strategy=strategy, max_price_by_gpu=tuple(by_gpu.items()), slots=2)
    leases = () if state is None else (
        builders.lease(
            1, state=state, gpu=held, gpu_rate=rate, rival_floor=rival, ask=None, interrupted_by=Cause.OUTBID,
            host_id="h99", state_since=builders.ago(minutes=30),
        ),
    )  # fmt: skip
    fleet = builders.fleet(workloads=(wanted,), leases=leases, markets={"vast": builders.view(offers=tuple(rows))})
    for made in plan.plan(fleet, TUNED, Limits()).decisions:
        if isinstance(made, Rent):
            assert made.rate <= by_gpu.get(made.offer.gpu, wanted.max_price)
        if isinstance(made, Rebid) and raises_spend(made):
            assert made.bid + made.lease.disk_rate <= by_gpu.get(made.lease.gpu, wanted.max_price)


class Careless:
    """Rents the first offer and bids anything, whatever it may cost."""

    params = PatientParams

    def __init__(self, bid: UsdPerHour | None = None) -> None:
        self.bid = bid

    def propose(self, view: View, _: object) -> list[Proposal]:
        """Return what no limit would allow."""
        (slot,) = view.slots
        why = Reason("careless", "pay it")
        if self.bid is not None:
            return [Proposal(slot.slot, IntentKind.REBID, why, lease=slot.lease, bid=self.bid)]
        found = next(view.ranking(offer_terms.Asks(MaxPrice(builders.per_hour("99")), 20.0)))
        return [Proposal(slot.slot, IntentKind.RENT, why, candidate=found)]


def struck(strategy: Careless, **changes: Any) -> Any:
    fleet = builders.fleet(workloads=(work(strategy="careless"),), **changes)
    tuned: dict[str, Tuned] = {"careless": builders.tuned(strategy, PatientParams(), "careless")}  # type: ignore[arg-type]
    (made,) = plan.plan(fleet, tuned, Limits()).decisions
    return made


def test_the_limits_refuse_a_rent_above_the_price_whatever_the_strategy() -> None:
    dear = builders.offer(gpu=SLOW, ask=builders.per_hour("0.20"), floor=None)
    made = struck(Careless(), markets={"vast": builders.view(offers=(dear,))})
    assert isinstance(made, Hold)
    assert (made.reason.code, made.reason.limit) == ("limit", "max_price")
    assert made.reason.sentence.startswith("$0.2042/h is above the $0.1500/h that train may pay for RTX 3090")
    fits = builders.offer(gpu=SLOW, ask=builders.per_hour("0.14"), floor=None)
    assert isinstance(struck(Careless(), markets={"vast": builders.view(offers=(fits,))}), Rent)


@pytest.mark.parametrize(("bid", "kind"), [("0.30", Hold), ("0.18", Rebid), ("0.14", Rebid)])
def test_the_limits_refuse_a_raise_above_the_price_and_never_a_lower_bid(bid: str, kind: type[Decision]) -> None:
    """A lease that was rented at $0.20 before the price was lowered may still be bid down."""
    held = builders.lease(gpu=SLOW, gpu_rate=builders.per_hour("0.20"))
    made = struck(Careless(builders.per_hour(bid)), leases=(held,))
    assert type(made) is kind, made
    assert slot_of(made) == held.slot


def test_explain_and_the_funnel_count_by_the_price_of_the_model() -> None:
    rows = (
        builders.offer(1, gpu=SLOW, floor=builders.per_hour("0.20"), ask=None),
        builders.offer(2, gpu=FAST, floor=builders.per_hour("2.00"), ask=None),
        builders.offer(3, floor=builders.per_hour("1.20"), ask=None),
    )
    view = msgspec.structs.replace(builders.view(offers=rows), sample=rows, sampled_at=builders.NOW)
    fleet = builders.fleet(workloads=(work(),), markets={"vast": view})
    found = funnel.of(fleet, work(), offer_refusal.Unavailable())
    assert found is not None
    assert [(step.code, step.left) for step in found.steps] == [("price", 1)]
    assert found.steps[0].wanted == "at $1.0000/h or less (RTX 3090 $0.1500/h, H100 SXM $2.1000/h)"
    made = explain.explain(fleet, plan.plan(fleet, TUNED, Limits()), work())
    assert [each.offer.offer_id for each in made.candidates] == ["a2"]
    assert {each.offer.offer_id: each.why.sentence for each in made.refused} == {
        "a1": "floor $0.2000/h and ask None are above $0.1500/h with disk",
        "a3": "floor $1.2000/h and ask None are above $1.0000/h with disk",
    }
    assert made.relaxed is not None
    assert made.relaxed.key == "max_price"


@pytest.mark.parametrize(
    ("ask", "but"),
    [
        ("0.80", "; by now it is gone, or the strategy pays less for it, as some do on demand and for slow GPUs"),
        ("1.20", ""),
    ],
)
def test_a_slot_stays_empty_beside_an_offer_that_the_strategy_pays_less_for(ask: str, but: str) -> None:
    """On demand it pays a share of the price: a bare "no offer fits" beside the funnel's offer contradicted it."""
    rows = (builders.offer(1, floor=None, ask=builders.per_hour(ask)),)
    view = msgspec.structs.replace(builders.view(offers=rows), sample=rows, sampled_at=builders.NOW)
    fleet = builders.fleet(workloads=(work(),), markets={"vast": view})
    (made,) = plan.plan(fleet, TUNED, Limits()).decisions
    found = funnel.of(fleet, work(), offer_refusal.Unavailable())
    assert found is not None
    assert found.fits == (1 if but else 0)
    assert made.reason.sentence == f"no offer fits within the price: {found.sentence}{but}"


def test_a_lease_is_raised_up_to_the_price_of_its_model() -> None:
    lost = builders.lease(
        state=LeaseState.PAUSED, gpu=FAST, interrupted_by=Cause.OUTBID, state_since=builders.ago(minutes=30),
        gpu_rate=builders.per_hour("1.00"), rival_floor=builders.per_hour("1.05"), ask=builders.per_hour("3.00"),
        tenure=Tenure.INTERRUPTIBLE,
    )  # fmt: skip
    fleet = builders.fleet(workloads=(work(),), leases=(lost,))
    (made,) = plan.plan(fleet, TUNED, Limits()).decisions
    assert isinstance(made, Rebid)
    assert 1.05 < made.bid.dollars <= 2.10
