"""The way from a healthy lease to a cheaper offer."""

import dataclasses
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.moves import recovery, voluntary_move
from agent.decide.strategy import Proposal, SlotView
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
from tests.support import builders


def on_demand(**changes: Any) -> Lease:
    """Build a healthy on-demand lease at $0.80 an hour."""
    return builders.lease(**{"tenure": Tenure.ON_DEMAND, "gpu_rate": builders.per_hour("0.80"), **changes})


def back(held: Lease | None, *, gain: float = 0.2, bid: str = "0.20", work: Workload | None = None) -> Proposal | None:
    best = builders.candidate(builders.offer(2), bid=bid)
    return voluntary_move.move_to_cheaper(SlotView(builders.slot(), held), work or builders.workload(), best, gain)


def test_a_much_cheaper_offer_is_worth_a_move() -> None:
    made = back(on_demand())
    assert made is not None
    assert made.kind is IntentKind.RENT
    assert made.candidate is not None
    assert [option.name for option in made.reason.options] == ["stay", "move"]


@pytest.mark.parametrize(("hours", "is_left"), [(6.0, True), (0.1, False), (0.0, False)])
@pytest.mark.parametrize("value", [None, builders.per_hour("1.00")], ids=["by cost", "by value"])
def test_a_move_must_pay_before_the_window_of_the_slot_closes(
    value: UsdPerHour | None, hours: float, *, is_left: bool
) -> None:
    slot = SlotView(builders.slot(), on_demand(), hours_left=hours)
    best = builders.candidate(builders.offer(2), bid="0.20")
    work = builders.workload(value_per_hour=value)
    assert (voluntary_move.move_to_cheaper(slot, work, best, 0.2) is not None) is is_left


@pytest.mark.parametrize("value", [None, builders.per_hour("1.00")], ids=["by cost", "by value"])
def test_what_leaves_a_host_counts_in_the_price_of_staying(value: UsdPerHour | None) -> None:
    """Twenty gigabytes every half hour, at $0.09 each, are $3.60 an hour."""
    checkpoint = Checkpoint(place=CheckpointPlace.REMOTE, interval=timedelta(minutes=30), size_gb=20.0)
    work = builders.workload(checkpoint=checkpoint, value_per_hour=value)
    cheap = on_demand(gpu_rate=builders.per_hour("0.10"))
    assert back(cheap, work=work) is None
    assert back(msgspec.structs.replace(cheap, egress_micros_per_gb=90_000), work=work) is not None


@pytest.mark.parametrize("tenure", [Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE])
def test_what_is_cheap_already_stays(tenure: Tenure) -> None:
    assert back(on_demand(tenure=tenure, gpu_rate=builders.per_hour("0.21"))) is None


def test_a_dear_bid_is_left_for_a_cheap_one_and_sooner_where_it_is_lost_often() -> None:
    def left(rate: str, losses: float) -> bool:
        held = on_demand(tenure=Tenure.INTERRUPTIBLE, gpu_rate=builders.per_hour(rate))
        best = builders.candidate(builders.offer(2), bid="0.20")
        view = SlotView(builders.slot(), held)
        return voluntary_move.move_to_cheaper(view, builders.workload(), best, 0.2, market_loss_rate=losses) is not None

    assert left("0.80", 0.1)
    rates = [f"0.{cents}" for cents in range(20, 80)]
    calm, contested = ([rate for rate in rates if left(rate, losses)] for losses in (0.0, 2.0))
    assert set(calm) < set(contested), "losses at home are no reason to stay"


@pytest.mark.parametrize(
    ("tenure", "to", "most"),
    [
        (Tenure.INTERRUPTIBLE, Tenure.INTERRUPTIBLE, voluntary_move.MOST_LEAVES),
        (Tenure.ON_DEMAND, Tenure.INTERRUPTIBLE, voluntary_move.MOST_RETURNS),
        (Tenure.ON_DEMAND, Tenure.ON_DEMAND, recovery.MOST_RUNS),
    ],
)
def test_moves_that_nothing_forces_end_with_the_days(tenure: Tenure, to: Tenure, most: int) -> None:
    best = builders.candidate(builders.offer(2), bid="0.20")
    best = dataclasses.replace(best, way=msgspec.structs.replace(best.way, tenure=to))
    for runs, is_left in ((most - 1, True), (most, False)):
        slot = SlotView(builders.slot(), on_demand(tenure=tenure), runs=runs)
        assert (voluntary_move.move_to_cheaper(slot, builders.workload(), best, 0.2) is not None) is is_left


@pytest.mark.parametrize(("tenure", "is_left"), [(Tenure.INTERRUPTIBLE, False), (Tenure.ON_DEMAND, True)])
def test_a_pool_is_left_for_itself_only_where_it_is_held_another_way(tenure: Tenure, is_left: bool) -> None:
    held = on_demand(tenure=tenure, host_id="pool/4090/eu/77")
    best = builders.candidate(builders.offer(2, host_id="pool/4090/eu"), bid="0.20")
    slot = SlotView(builders.slot(), held)
    assert (voluntary_move.move_to_cheaper(slot, builders.workload(), best, 0.2) is not None) is is_left


def test_the_only_checkpoint_is_never_left_behind() -> None:
    assert back(on_demand(), work=builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))) is None


def test_without_an_offer_or_a_lease_nothing_moves() -> None:
    assert back(None) is None
    assert (
        voluntary_move.move_to_cheaper(SlotView(builders.slot(), on_demand()), builders.workload(), None, 0.2) is None
    )


def test_a_faster_host_may_cost_more_and_a_slower_one_is_not_scaled_up() -> None:
    slow = on_demand(dlperf=40.0, gpu_rate=builders.per_hour("0.30"))
    faster = back(slow, bid="0.20")
    assert faster is not None
    stay, move = faster.reason.options
    assert move.dollars < stay.dollars, "it moves to what it shows as dearer"
    assert "for the same work" in faster.reason.sentence
    assert back(on_demand(gpu_rate=builders.per_hour("0.30")), bid="0.20") is None
    fast = on_demand(dlperf=400.0)
    assert back(fast, bid="0.20") is not None


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 100))
def test_the_more_it_must_gain_the_seldomer_it_moves(gain: float, more: float, cents: int) -> None:
    bid = f"{cents / 100}"
    if back(on_demand(), gain=gain, bid=bid) is None:
        assert back(on_demand(), gain=gain + more, bid=bid) is None


BARE = Checkpoint(place=CheckpointPlace.NONE)


@pytest.mark.parametrize(("kind", "is_left"), [(WorkloadKind.BATCH, False), (WorkloadKind.SERVICE, True)])
def test_a_batch_without_checkpoints_pays_for_all_its_hours_again(kind: WorkloadKind, *, is_left: bool) -> None:
    """Twenty hours of work are begun again for no saving of six hours; a service has none to repeat."""
    held = on_demand(run_since=builders.ago(hours=20))
    assert (back(held, work=builders.workload(kind=kind, checkpoint=BARE)) is not None) is is_left
    young = on_demand(run_since=builders.ago(minutes=10))
    assert back(young, work=builders.workload(kind=kind, checkpoint=BARE)) is not None


@pytest.mark.parametrize(("task_hours", "is_left"), [(1.0, False), (2.05, False), (24.0, True)])
def test_a_move_saves_at_most_what_is_left_of_a_task(task_hours: float, *, is_left: bool) -> None:
    work = builders.workload(kind=WorkloadKind.BATCH, array=ArrayTerms(2, task_hours=task_hours))
    held = on_demand(run_since=builders.ago(hours=2))
    assert (back(held, work=work) is not None) is is_left
