"""Which leases a demand that shrinks ends, and which it leaves."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from agent.decide import plan
from agent.decide.limits.limits import Limits
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import Intent
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.slot import Slot
from agent.domain.slot_demand import Demand, DemandFrom, DemandReport, HandDemand
from agent.domain.work.decision import Hold, Release, Rent, slot_of
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from strategies.patient import Patient, PatientParams
from tests.support import builders

NOW = builders.NOW
TERMS = Demand(0, DemandFrom.HTTP)
REMOTE = Checkpoint(place=CheckpointPlace.REMOTE)
STATES = {LeaseState.PAUSED: InstanceState.PAUSED, LeaseState.RELEASING: InstanceState.OFFLINE}


def fleet(
    leases: Sequence[Lease], tasks: int, *, intents: Sequence[Intent] = (), hand: int | None = None, **changes: Any
) -> Fleet:
    """Return a fleet in which a workload of six slots has had so many tasks for half an hour."""
    shown = {key: changes.pop(key) for key in ("clock_skew_seconds", "no_spend_because") if key in changes}
    work = builders.workload(slots=6, demand=TERMS, kind=WorkloadKind.SERVICE, checkpoint=REMOTE, **changes)
    rows = tuple(
        builders.instance(
            int(each.instance_id),
            state=STATES.get(each.state, InstanceState.RUNNING),
            is_called_over=each.state is LeaseState.RELEASING,
        )
        for each in leases
    )
    view = builders.view(offers=tuple(map(builders.offer, range(20, 26))), instances=rows, **shown)
    told = {"train": DemandReport(tasks, tasks, NOW, builders.ago(minutes=30))}
    hands = {} if hand is None else {"train": HandDemand("train", hand, NOW + dt.timedelta(hours=1))}
    return builders.fleet(
        workloads=(work,),
        leases=tuple(leases),
        intents=tuple(intents),
        markets={"vast": view},
        demand_reports=told,
        hand_demands=hands,
    )


def planned(seen: Fleet) -> list[tuple[type, int]]:
    decisions = plan.plan(seen, {"patient": builders.tuned(Patient(), PatientParams())}, Limits()).decisions
    return sorted(
        ((type(each), slot_of(each).index) for each in decisions if not isinstance(each, Hold)),
        key=lambda each: (each[1], each[0].__name__),
    )


def running(*slots: int) -> list[Lease]:
    return [builders.lease(index + 1, slot=Slot("train", index)) for index in slots]


@pytest.mark.parametrize(
    "why", [{"no_spend_because": "spend = false"}, {"clock_skew_seconds": 90.0}], ids=["spend", "clock"]
)
@pytest.mark.parametrize("hand", [None, 0], ids=["read", "by hand"])
def test_what_nobody_wants_goes_also_while_nothing_may_be_paid_for(why: dict[str, Any], hand: int | None) -> None:
    """Its slot need not be rented again. Idle workers billed on until the clock was right."""
    assert planned(fleet(running(0, 1), 6 if hand == 0 else 0, hand=hand, **why)) == [(Release, 0), (Release, 1)]


@pytest.mark.parametrize("hand", [None, 1], ids=["read", "by hand"])
def test_for_a_rent_in_doubt_or_a_stranger_no_working_lease_goes(hand: int | None) -> None:
    """The one that served was released, and nothing served until the doubt ended."""
    doubt = builders.intent(slot=Slot("train", 1))
    stranger = builders.lease(9, slot=Slot("train", 5), is_held=True)
    for seen in (fleet(running(0), 1, intents=(doubt,), hand=hand), fleet([*running(0), stranger], 1, hand=hand)):
        assert Release not in [kind for kind, _ in planned(seen)]


def test_a_lease_that_only_waits_for_the_proof_of_its_end_does_not_hide_the_one_that_runs() -> None:
    """The GPU of the slot billed on until a person looked."""
    over = builders.lease(9, slot=Slot("train", 0), state=LeaseState.RELEASING, opened_at=builders.ago(minutes=5))
    ended = {index for kind, index in planned(fleet([*running(0, 1), over], 0)) if kind is Release}
    assert ended == {0, 1}
    one = [index for kind, index in planned(fleet([*running(0, 1), over], 1)) if kind is Release]
    assert one.count(1) + one.count(0) == 2, "one of those that run, and the release that is ordered again"


def test_a_lease_that_has_run_its_time_frees_its_place_and_goes_once_others_have_it() -> None:
    """Three were wanted, and after twelve hours nothing served: their paused disks kept three places."""
    limit = RunningLimit(dt.timedelta(hours=12), LimitOf.LEASE, AtLimit.PAUSE)
    stopped = {"state": LeaseState.PAUSED, "paused_by_us": True, "bills": Bills.DISK, "has_run": True}
    over = [
        builders.lease(index + 1, slot=Slot("train", index), ran_micros=13 * 3600 * 10**6, **stopped)
        for index in (0, 1)
    ]
    assert planned(fleet(over, 2, max_running=(limit,))) == [(Rent, 2), (Rent, 3)]
    assert planned(fleet([*over, *running(2, 3)], 2, max_running=(limit,))) == [(Release, 0), (Release, 1)]
    full = fleet([*over, *running(2, 3, 4, 5)], 6, max_running=(limit,))
    assert planned(full) == [(Release, 0), (Release, 1)], "no slot is empty"
    unpaid = fleet([*over, *running(2, 3, 4, 5)], 6, max_running=(limit,), no_spend_because="spend = false")
    assert planned(unpaid) == [], "another one could not be rented"
    kept = OperatorHold(Word.PAUSE, hold.of_slot(Slot("train", 0)), NOW, "ops")
    assert planned(msgspec.structs.replace(full, holds=(kept,))) == [(Release, 1)], "a person keeps that disk"


def test_a_slot_that_a_hold_stops_goes_before_one_that_serves() -> None:
    """Two that served were released for one whose pause its market had not confirmed."""
    held = OperatorHold(Word.HELD, hold.of_slot(Slot("train", 0)), NOW, "its work stalls")
    seen = msgspec.structs.replace(fleet(running(0, 1, 2), 1), holds=(held,))
    assert [index for kind, index in planned(seen) if kind is Release] == [2], "one of the others serves on"
