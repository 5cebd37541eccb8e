"""A running lease whose host leaves the market is moved while it runs."""

from datetime import timedelta

import pytest

from agent.decide import needs
from agent.decide.moves import recovery
from agent.decide.strategy import SlotView
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
SOON = NOW + recovery.LEAVE_BEFORE - timedelta(minutes=1)
LATER = NOW + recovery.LEAVE_BEFORE + timedelta(minutes=1)
PLACE = builders.slot()
WORK = builders.workload()


@pytest.mark.parametrize(
    ("ends_at", "state", "code"),
    [
        (SOON, LeaseState.RUNNING, "end_date"),
        (LATER, LeaseState.RUNNING, None),
        (None, LeaseState.RUNNING, None),
        (SOON, LeaseState.STARTING, None),
    ],
)
def test_it_is_left_in_time_and_only_while_it_runs(ends_at: object, state: LeaseState, code: str | None) -> None:
    held = builders.lease(ends_at=ends_at, state=state)
    made = recovery.leave_ending_host(SlotView(PLACE, held), WORK, builders.candidate(builders.offer(2)), NOW)
    assert (made.reason.code if made else None) == code
    if made is not None:
        assert made.kind is IntentKind.RENT
        assert made.candidate is not None


@pytest.mark.parametrize(("hours", "is_moved"), [(1.0, True), (0.9, False)])
def test_a_host_that_leaves_after_the_window_closes_is_not_left_before(hours: float, *, is_moved: bool) -> None:
    slot = SlotView(PLACE, builders.lease(ends_at=SOON), hours_left=hours)
    made = recovery.leave_ending_host(slot, WORK, builders.candidate(builders.offer(2)), NOW)
    assert (made is not None) is is_moved


def test_a_move_on_its_way_is_not_begun_again() -> None:
    slot = SlotView(PLACE, builders.lease(ends_at=SOON), builders.lease(2, state=LeaseState.STARTING))
    assert recovery.leave_ending_host(slot, WORK, builders.candidate(builders.offer(2)), NOW) is None


def test_the_only_copy_stays_where_it_is_and_a_person_is_told() -> None:
    work = builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    made = recovery.leave_ending_host(SlotView(PLACE, builders.lease(ends_at=SOON)), work, builders.candidate(), NOW)
    assert made is not None
    assert (made.kind, made.reason.code) == (None, "ends_soon")
    assert "may_lose_disk" in made.reason.sentence


def test_without_an_offer_it_goes_on_as_long_as_it_can() -> None:
    made = recovery.leave_ending_host(SlotView(PLACE, builders.lease(ends_at=SOON)), WORK, None, NOW)
    assert made is not None
    assert (made.kind, made.reason.code) == (None, "ends_soon")


def test_offers_are_asked_for_when_a_host_is_about_to_leave() -> None:
    assert needs.needs(builders.fleet(leases=(builders.lease(ends_at=SOON),)))
    assert not needs.needs(builders.fleet(leases=(builders.lease(ends_at=LATER),)))
