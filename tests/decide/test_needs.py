"""Search rows are rationed: only a choice to make asks for them."""

from typing import Any

import pytest

from agent.decide import needs
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from tests.support import builders

LIVE = [LeaseState.STARTING, LeaseState.RUNNING, LeaseState.EXITED, LeaseState.MISSING]


def needed(**changes: Any) -> list[str]:
    return [need.workload.name for need in needs.needs(builders.fleet(**changes))]


def test_an_empty_slot_needs_offers() -> None:
    assert needed() == ["train"]


def test_a_workload_without_slots_needs_none() -> None:
    assert needed(workloads=(builders.workload(slots=0),)) == []


@pytest.mark.parametrize("state", LIVE, ids=lambda state: state.value)
def test_a_slot_that_is_served_needs_none(state: LeaseState) -> None:
    assert needed(leases=(builders.lease(state=state),)) == []


@pytest.mark.parametrize("state", sorted(needs.DOWN, key=str), ids=lambda state: state.value)
def test_a_slot_that_is_down_needs_offers(state: LeaseState) -> None:
    assert needed(leases=(builders.lease(state=state),)) == ["train"]


def test_a_slot_in_doubt_waits() -> None:
    assert needed(intents=(builders.intent(),)) == []
    assert needed(intents=(builders.intent(kind=IntentKind.PAUSE),)) == ["train"]


def test_one_needy_slot_among_served_ones_is_enough() -> None:
    work = builders.workload(slots=2)
    assert needed(workloads=(work,), leases=(builders.lease(),)) == ["train"]


def test_the_hosts_of_paused_leases_are_asked_for_by_name() -> None:
    work = builders.workload(slots=2)
    leases = (
        builders.lease(1, state=LeaseState.PAUSED),
        builders.lease(2, state=LeaseState.OFFLINE, slot=builders.slot("train", 1)),
    )
    need = needs.needs(builders.fleet(workloads=(work,), leases=leases))[0]
    assert need.held_hosts == (("vast", "h1"),)


def test_a_need_is_new_when_what_is_down_changes() -> None:
    before = builders.lease(1, state=LeaseState.PAUSED)
    later = builders.lease(1, state=LeaseState.PAUSED, state_since=builders.NOW)
    keys = {needs.needs(builders.fleet(leases=leases))[0].key for leases in ((), (before,), (later,), (before,))}
    assert len(keys) == 3
