"""How many slots a demand wants: it grows at once, shrinks slowly, and never by silence."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.demand import demand_window, wanted_slots
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand, DemandFrom, DemandReport, HandDemand
from agent.domain.work.decision import Decision, Hold, Release, Resume, slot_of
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from strategies.hedged import Hedged
from strategies.hedged_rules.params import HedgedParams
from strategies.patient import Patient, PatientParams
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


@pytest.mark.parametrize(("state", "begins"), [(LeaseState.PAUSED, [3]), (LeaseState.RUNNING, [])])
def test_in_place_of_a_slot_that_waits_for_a_person_another_one_begins(state: LeaseState, begins: list[int]) -> None:
    """Three were wanted, and two served until a person came."""
    place = Slot("train", 1)
    held = OperatorHold(Word.HELD, hold.of_slot(place), NOW, "its work stalls")
    up = [builders.lease(at + 1, slot=Slot("train", at)) for at in range(3)]
    is_down = state is LeaseState.PAUSED
    leases = [up[0], msgspec.structs.replace(up[1], state=state, paused_by_us=is_down), up[2]]
    seen = msgspec.structs.replace(_shrinking(leases, tasks=12), holds=(held,))
    waits = demand_window.waiting(seen, seen.workloads[0], hold.in_force(seen.holds, NOW))
    assert [index for index in (3, 4) if Slot("train", index) not in waits] == begins
    found = wanted_slots.wanted(seen, seen.workloads[0])
    assert found is not None
    assert (place in found.live) == (state is LeaseState.RUNNING)


def _shrinking(leases: Sequence[Lease], tasks: int, **changes: Any) -> Fleet:
    work = builders.workload(slots=5, demand=TERMS, kind=WorkloadKind.SERVICE, **changes)
    states = {LeaseState.PAUSED: InstanceState.PAUSED, LeaseState.STARTING: InstanceState.LOADING}
    rows = [
        builders.instance(int(each.instance_id), state=states.get(each.state, InstanceState.RUNNING)) for each in leases
    ]
    view = builders.view(offers=tuple(map(builders.offer, range(20, 25))), instances=tuple(rows))
    told = {"train": report(tasks)}
    return builders.fleet(workloads=(work,), leases=tuple(leases), demand_reports=told, markets={"vast": view})


def _planned(seen: Fleet) -> list[Decision]:
    decisions = plan.plan(seen, {"patient": builders.tuned(Patient(), PatientParams())}, Limits()).decisions
    return [each for each in decisions if not isinstance(each, Hold)]


@pytest.mark.parametrize("bills", Bills)
def test_while_a_market_carries_out_the_releases_no_other_slot_goes_and_none_begins(bills: Bills) -> None:
    idle = [builders.lease(at + 1, slot=Slot("train", at), idle_since=builders.ago(hours=1)) for at in range(5)]
    first = _planned(_shrinking(idle, tasks=12))
    assert [(type(each), slot_of(each).index) for each in first] == [(Release, 3), (Release, 4)]
    leaving = [
        msgspec.structs.replace(each, state=LeaseState.RELEASING, bills=bills) if each.slot.index > 2 else each
        for each in idle
    ]
    then = _planned(_shrinking(leaving, tasks=12))
    assert {slot_of(each).index for each in then} <= {3, 4}
    assert all(isinstance(each, Release) for each in then)


def test_of_slots_that_were_paused_one_runs_again_and_the_other_stays_paused() -> None:
    runs = [builders.lease(at + 1, slot=Slot("train", at)) for at in range(2)]
    paused = [
        builders.lease(
            at + 1, slot=Slot("train", at), state=LeaseState.PAUSED, paused_by_us=True, has_run=True, bills=Bills.DISK
        )
        for at in (2, 3)
    ]
    disk = Checkpoint(place=CheckpointPlace.DISK)
    [resumed] = _planned(_shrinking([*runs, *paused], tasks=12, checkpoint=disk))
    assert isinstance(resumed, Resume)
    starts = [
        msgspec.structs.replace(each, state=LeaseState.STARTING, paused_by_us=False, bills=Bills.GPU_AND_DISK)
        if each.slot == slot_of(resumed)
        else each
        for each in (*runs, *paused)
    ]
    assert _planned(_shrinking(starts, tasks=12, checkpoint=disk)) == [], "it is let start"


def test_a_strategy_that_weighs_all_slots_ends_none_for_those_that_the_demand_ends() -> None:
    """Two idle leases go; the two that are busy and dearer are all that is wanted, and stay."""
    cheap = [builders.lease(at + 1, slot=Slot("train", at), idle_since=builders.ago(hours=1)) for at in range(2)]
    busy = [builders.lease(at + 1, slot=Slot("train", at), gpu_rate=builders.per_hour("0.30")) for at in (2, 3)]
    warm = builders.tuned(Hedged(), HedgedParams(keep_warm=True, spare_slots=0))
    seen = _shrinking([*cheap, *busy], tasks=8)
    dear = tuple(builders.offer(number, floor=builders.per_hour("0.32")) for number in range(20, 25))
    seen = msgspec.structs.replace(seen, markets={"vast": msgspec.structs.replace(seen.markets["vast"], offers=dear)})
    orders = [each for each in plan.plan(seen, {"patient": warm}, Limits()).decisions if not isinstance(each, Hold)]
    assert [(type(each), slot_of(each).index) for each in orders] == [(Release, 0), (Release, 1)]


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
