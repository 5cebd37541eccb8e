"""A host whose kept checks are below the floor is not rented again by who rejects for it."""

from dataclasses import replace

import msgspec
import pytest

from agent.decide import explain, plan
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from agent.domain.market.gpu import GpuModel
from agent.domain.record.host_check import HostCheck
from agent.domain.work.decision import Rent
from agent.domain.work.guard_terms import Accept
from strategies.patient import Patient, PatientParams
from tests.support import builders

TUNED = {"patient": builders.tuned(Patient(), PatientParams())}
CHEAP, SOUND = builders.offer(1, floor=builders.per_hour("0.20")), builders.offer(2, floor=builders.per_hour("0.45"))


def check(host: str, tflops: float, model: GpuModel = CHEAP.gpu) -> HostCheck:
    return HostCheck(f"{host}-{model}", CHEAP.market, host, "", model, 1, 100.0, builders.NOW, tflops)


OTHERS = [check(f"other-{number}", 100.0) for number in range(3)]


def fleet(checks: list[HostCheck], accept: Accept = Accept.REJECT, floor: float | None = 0.7) -> Fleet:
    work = builders.guarded()
    assert work.guard is not None
    work = replace(work, guard=replace(work.guard, accept=accept, accept_floor=floor))
    made = builders.fleet(workloads=(work,), markets={"vast": builders.view(offers=(CHEAP, SOUND))})
    return msgspec.structs.replace(made, host_checks={each.lease_id: each for each in checks})


def rented(made: Fleet) -> list[str]:
    return [each.offer.offer_id for each in plan.plan(made, TUNED, Limits()).decisions if isinstance(each, Rent)]


def test_a_host_below_the_floor_is_not_rented_again_and_explain_says_why() -> None:
    made = fleet([*OTHERS, check(CHEAP.host_id, 50.0)])
    assert rented(made) == [SOUND.offer_id]
    told = explain.explain(made, plan.plan(made, TUNED, Limits()), made.workloads[0])
    assert [each.offer.offer_id for each in told.candidates] == [SOUND.offer_id]
    (refused,) = told.refused
    assert (refused.offer.offer_id, refused.why.code) == (CHEAP.offer_id, "accept_floor")
    assert refused.why.sentence == f"measured at 50% of the median {CHEAP.gpu}; accept_floor is 0.7"


@pytest.mark.parametrize(
    "made",
    [
        fleet([*OTHERS, check(CHEAP.host_id, 71.0)]),
        fleet([*OTHERS, check(CHEAP.host_id, 50.0)], accept=Accept.TELL),
        fleet([*OTHERS, check(CHEAP.host_id, 50.0)], floor=None),
        fleet([*OTHERS[:2], check(CHEAP.host_id, 50.0)]),
        fleet([*OTHERS, check(CHEAP.host_id, 50.0, GpuModel("GTX 1080"))]),
        fleet(OTHERS),
    ],
    ids=["fast enough", "only told", "no floor", "two owners known", "another card of it", "never measured"],
)
def test_any_other_host_is_rented_by_its_price(made: Fleet) -> None:
    assert rented(made) == [CHEAP.offer_id]
