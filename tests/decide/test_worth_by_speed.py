"""An hour on a slower card is worth less, where a workload names several."""

import dataclasses

import pytest

from agent.decide.moves import recovery, voluntary_move
from agent.decide.pricing import offer_terms
from agent.decide.pricing.worth import work_value
from agent.decide.strategy import Down, SlotView
from agent.domain.market import gpu
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import MaxPrice
from tests.support import builders

SLOW = gpu.model("RTX 3090")
FAST = builders.RTX_4090
TYPICAL = {(FAST, 1): 100.0, (SLOW, 1): 44.0, (gpu.model("H100 SXM"), 1): 500.0, (FAST, 8): 800.0}
EITHER = builders.requirements(gpu_models=(FAST, SLOW))


def test_the_fastest_is_among_the_models_named_and_of_the_same_size() -> None:
    assert work_value.fastest(TYPICAL, builders.workload(requirements=EITHER)) == 100.0
    assert work_value.fastest(TYPICAL, builders.workload()) == 0.0
    assert work_value.fastest({}, builders.workload(requirements=EITHER)) == 0.0
    anything = builders.workload(requirements=builders.requirements(gpu_models=()))
    assert work_value.fastest(TYPICAL, anything) == 0.0


@pytest.mark.parametrize(("dlperf", "fastest", "speed"), [(44.0, 100.0, 0.44), (120.0, 100.0, 1.0), (44.0, 0.0, 1.0)])
def test_speed_is_a_share_of_the_fastest(dlperf: float, fastest: float, speed: float) -> None:
    assert offer_terms.speed(dlperf, fastest) == pytest.approx(speed)


@pytest.mark.parametrize(("fastest", "fits"), [(0.0, True), (100.0, False)])
def test_a_slow_card_must_be_cheap_in_proportion(fastest: float, fits: bool) -> None:
    slow = builders.offer(gpu=SLOW, dlperf=44.0, floor=builders.per_hour("0.30"), ask=builders.per_hour("0.40"))
    most = MaxPrice(builders.per_hour("0.60"))
    assert bool(offer_terms.Asks(most, 20.0, fastest)(slow)) is fits
    assert bool(offer_terms.Bids(most, 20.0, 0.1, 0.9, fastest)(slow)) is fits


@pytest.mark.parametrize(("fastest", "moves"), [(0.0, True), (100.0, False)])
def test_half_the_price_for_less_than_half_the_work_is_no_gain(fastest: float, moves: bool) -> None:
    held = builders.lease(tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.80"), dlperf=100.0)
    best = builders.candidate(builders.offer(2, dlperf=44.0), bid="0.40")
    work = builders.workload(requirements=EITHER)
    made = voluntary_move.move_to_cheaper(SlotView(builders.slot(), held), work, best, 0.1, fastest=fastest)
    assert (made is not None) is moves


@pytest.mark.parametrize(("fastest", "code"), [(0.0, "raise_bid"), (100.0, "move")])
def test_a_slow_card_is_not_bid_back_where_a_fast_one_does_the_work_for_less(fastest: float, code: str) -> None:
    held = builders.lease(
        state=LeaseState.PAUSED,
        interrupted_by=Cause.OUTBID,
        state_since=builders.ago(minutes=5),
        dlperf=44.0,
        rival_floor=builders.per_hour("0.24"),
    )
    slot = SlotView(held.slot, held, None, Down(held.state_since))
    most, worth = builders.per_hour("0.36"), builders.per_hour("1.00")
    numbers = recovery.RecoveryParams(most, 0.05, 0.05, may_move=True, may_raise=True, worth=worth, fastest=fastest)
    fast = builders.candidate(builders.offer(2, dlperf=100.0), bid="0.34")
    work = dataclasses.replace(builders.workload(requirements=EITHER))
    made = recovery.recover(slot, work, [fast], 0.15, numbers, builders.NOW)
    assert made.reason.code in {code, "cancel_start" if code == "move" else code}
