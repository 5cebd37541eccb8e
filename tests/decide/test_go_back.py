"""The way back from on-demand to a cheaper offer."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import recovery
from agent.decide.strategy import Proposal, SlotView
from agent.domain.intent import IntentKind
from agent.domain.lease import Lease
from agent.domain.tenure import Tenure
from agent.domain.workload import Checkpoint, CheckpointPlace, Workload
from tests.support import builders


def on_demand(**changes: Any) -> Lease:
    """Build a healthy on-demand lease at $0.80 an hour."""
    return builders.lease(**{"tenure": Tenure.ON_DEMAND, "gpu_rate": builders.per_hour("0.80"), **changes})


def back(held: Lease | None, *, gain: float = 0.2, bid: str = "0.20", work: Workload | None = None) -> Proposal | None:
    best = builders.candidate(builders.offer(2), bid=bid)
    return recovery.go_back(SlotView(builders.slot(), held), work or builders.workload(), best, gain)


def test_a_much_cheaper_offer_is_worth_a_move() -> None:
    made = back(on_demand())
    assert made is not None
    assert made.kind is IntentKind.RENT
    assert made.candidate is not None
    assert [option.name for option in made.reason.options] == ["stay", "move"]


@pytest.mark.parametrize(
    "changes", [{"tenure": Tenure.INTERRUPTIBLE}, {"gpu_rate": builders.per_hour("0.21")}], ids=str
)
def test_what_is_interruptible_or_cheap_already_stays(changes: dict[str, Any]) -> None:
    assert back(on_demand(**changes)) is None


def test_the_only_checkpoint_is_never_left_behind() -> None:
    assert back(on_demand(), work=builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))) is None


def test_without_an_offer_or_a_lease_nothing_moves() -> None:
    assert back(None) is None
    assert recovery.go_back(SlotView(builders.slot(), on_demand()), builders.workload(), None, 0.2) is None


def test_a_faster_host_may_cost_more_and_a_slower_one_is_not_scaled_up() -> None:
    slow = on_demand(dlperf=40.0, gpu_rate=builders.per_hour("0.30"))
    assert back(slow, bid="0.20") is not None
    assert back(on_demand(gpu_rate=builders.per_hour("0.30")), bid="0.20") is None
    fast = on_demand(dlperf=400.0)
    assert back(fast, bid="0.20") is not None


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 100))
def test_the_more_it_must_gain_the_seldomer_it_moves(gain: float, more: float, cents: int) -> None:
    bid = f"{cents / 100}"
    if back(on_demand(), gain=gain, bid=bid) is None:
        assert back(on_demand(), gain=gain + more, bid=bid) is None
