"""How many slots a demand wants: it grows at once, shrinks slowly, and never by silence."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.demand import demand_window, wanted_slots
from agent.domain.fleet import Fleet
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand, DemandFrom, DemandReport, HandDemand
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
STEADY = builders.ago(minutes=30)
TERMS = Demand(1, DemandFrom.HTTP, per_slot=4)


def report(tasks: int, **changes: Any) -> DemandReport:
    return DemandReport(**{"tasks": tasks, "most_tasks": tasks, "read_at": NOW, "since": STEADY, **changes})


def fleet(told: DemandReport | None, live: int = 0, hand: HandDemand | None = None, **changes: Any) -> Fleet:
    work = builders.workload(slots=6, demand=TERMS, **changes)
    leases = tuple(builders.lease(number + 1, slot=Slot("train", number)) for number in range(live))
    reports = {"train": told} if told is not None else {}
    hands = {"train": hand} if hand is not None else {}
    return builders.fleet(workloads=(work,), leases=leases, demand_reports=reports, hand_demands=hands)


def wanted(told: DemandReport | None, live: int = 0, hand: HandDemand | None = None) -> tuple[int, bool]:
    seen = fleet(told, live, hand)
    found = wanted_slots.wanted(seen, seen.workloads[0])
    assert found is not None
    assert len(found.live) == live
    return found.slots, found.may_shrink


@pytest.mark.parametrize(("tasks", "slots"), [(0, 1), (1, 1), (4, 1), (5, 2), (18, 5), (24, 6), (10**9, 6)])
def test_a_slot_is_wanted_for_so_many_tasks_within_the_range(tasks: int, slots: int) -> None:
    assert wanted(report(tasks)) == (slots, True)


def test_before_the_first_answer_the_least_is_wanted_and_what_is_live_stays() -> None:
    assert wanted(None) == (1, False)
    assert wanted(None, live=4) == (4, False)
    assert wanted(DemandReport(trouble="it answers 500"), live=4) == (4, False)


def test_it_shrinks_only_after_steady_answers() -> None:
    begun = builders.ago(minutes=9)
    assert wanted(report(0, since=begun), live=4) == (4, False)
    assert wanted(report(0, most_tasks=16), live=5) == (4, True), "sixteen tasks within the last ten minutes"
    assert wanted(report(0), live=5) == (1, True)
    assert wanted(report(24, since=begun), live=2) == (6, False), "it grows at once"


def test_an_old_answer_shrinks_nothing_while_there_is_no_new_one() -> None:
    """As after a demand by hand that grew while whoever has the queue was away."""
    assert wanted(report(0, trouble="it answers 503"), live=5) == (5, False)


def test_a_hand_outranks_what_is_read_until_it_is_over() -> None:
    hand = HandDemand("train", 3, NOW + dt.timedelta(minutes=1))
    assert wanted(report(24), live=5, hand=hand) == (3, True)
    assert wanted(report(24), live=5, hand=HandDemand("train", 3, NOW)) == (6, True)


def test_the_lowest_empty_slots_begin() -> None:
    seen = fleet(report(12), live=1)
    waits = demand_window.waiting(seen, seen.workloads[0], {})
    assert sorted(place.index for place in waits) == [3, 4, 5]
    assert {reason.sentence for reason in waits.values()} == {"the demand of train does not want it now"}
    found = wanted_slots.wanted(seen, seen.workloads[0])
    assert found is not None
    assert found.sentence == "wanted 3: 12 task(s) waiting or running, 4 a slot"


def test_of_live_slots_the_idle_goes_first_then_the_dearest() -> None:
    seen = fleet(report(8), live=4)
    idle, dear, loading, plain = seen.leases
    leases = (
        builders.lease(1, slot=idle.slot, idle_since=builders.ago(hours=1)),
        builders.lease(2, slot=dear.slot, gpu_rate=dear.gpu_rate + dear.gpu_rate),
        builders.lease(3, slot=loading.slot, state=LeaseState.STARTING),
        plain,
    )
    seen = builders.fleet(workloads=seen.workloads, leases=leases, demand_reports=seen.demand_reports)
    going = demand_window.leaving(seen, seen.workloads[0])
    assert {place.index for place in going} == {0, 2}
    assert {each.kind for each in going.values()} == {IntentKind.RELEASE}


def test_a_disk_that_may_hold_the_only_copy_is_paused() -> None:
    seen = fleet(report(0), live=2, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    (going,) = demand_window.leaving(seen, seen.workloads[0]).values()
    assert going.kind is IntentKind.PAUSE


@given(st.integers(0, 10**12), st.integers(0, 6), st.booleans(), st.integers(0, 60))
def test_whatever_is_answered_the_range_holds(tasks: int, live: int, is_troubled: bool, steady: int) -> None:
    told = report(tasks, since=builders.ago(minutes=steady), trouble="away" if is_troubled else "")
    slots, may_shrink = wanted(told, live)
    assert TERMS.least <= slots <= 6
    assert may_shrink or slots >= live
    seen = fleet(told, live)
    going, waits = demand_window.leaving(seen, seen.workloads[0]), demand_window.waiting(seen, seen.workloads[0], {})
    assert len(going) == max(live - slots, 0)
    assert (6 - live) - len(waits) == max(slots - live, 0)
