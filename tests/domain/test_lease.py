"""A lease: its billing, its possible cost, and its allowed changes of state."""

import itertools

import pytest

from agent.domain.money import FREE
from agent.domain.record.lease import ALLOWED, Bills, LeaseState
from tests.support import builders

GPU, DISK = builders.per_hour("0.22"), builders.per_hour("0.004")


@pytest.mark.parametrize(
    ("bills", "rate"), [(Bills.GPU_AND_DISK, GPU + DISK), (Bills.DISK, DISK), (Bills.NOTHING, FREE)]
)
def test_it_bills_what_the_market_has_shown(bills: Bills, rate: object) -> None:
    assert builders.lease(bills=bills).billing_rate == rate


@pytest.mark.parametrize("state", list(LeaseState))
@pytest.mark.parametrize("paused_by_us", [False, True])
def test_whatever_may_start_again_counts_with_its_gpus(state: LeaseState, paused_by_us: bool) -> None:
    held = builders.lease(state=state, paused_by_us=paused_by_us, bills=Bills.NOTHING)
    expected = FREE if state is LeaseState.ENDED else DISK if paused_by_us else GPU + DISK
    assert held.committed_rate == expected


@pytest.mark.parametrize("state", list(LeaseState))
def test_a_lease_never_costs_more_than_is_committed(state: LeaseState) -> None:
    for bills, paused_by_us in itertools.product(Bills, (False, True)):
        held = builders.lease(state=state, bills=bills, paused_by_us=paused_by_us)
        if held.is_open:
            assert max(held.billing_rate, held.disk_rate) <= held.committed_rate


@pytest.mark.parametrize("state", list(LeaseState))
def test_open_and_live(state: LeaseState) -> None:
    held = builders.lease(state=state)
    assert held.is_open is (state is not LeaseState.ENDED)
    assert held.is_live is (state in {LeaseState.STARTING, LeaseState.RUNNING})


def test_a_release_is_kept_or_called_off_and_an_end_is_final() -> None:
    assert ALLOWED[LeaseState.RELEASING] == {LeaseState.ENDED, LeaseState.RUNNING}
    assert ALLOWED[LeaseState.ENDED] == frozenset()
    assert set(ALLOWED) == set(LeaseState)


@pytest.mark.parametrize(
    "state", [state for state in LeaseState if state not in {LeaseState.RELEASING, LeaseState.ENDED}]
)
def test_every_other_state_may_become_any_but_itself(state: LeaseState) -> None:
    assert ALLOWED[state] == frozenset(LeaseState) - {state}
