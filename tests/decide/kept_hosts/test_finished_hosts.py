"""A host is kept for another task only while it surely stays."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.decide import plan
from agent.decide.kept_hosts import finished_hosts
from agent.decide.limits.limits import Limits
from agent.decide.operators import reload
from agent.decide.pricing import cooldowns
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.slot import Slot
from agent.domain.work import kept_terms
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.deadline import Start
from agent.domain.work.decision import Reason, Release, Rent
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Fallback, Workload, WorkloadKind
from strategies.patient import Patient, PatientParams
from tests.support import builders

NOW = builders.NOW


def array() -> Workload:
    work = builders.guarded(
        "sweep",
        kind=WorkloadKind.BATCH,
        slots=20,
        array=ArrayTerms(2, task_hours=0.1),
        checkpoint=Checkpoint(place=CheckpointPlace.REMOTE),
        image_gb=60.0,
    )
    assert work.guard is not None
    return replace(work, guard=replace(work.guard, keep_host=True))


def seen(today: Workload, **changes: Any) -> Fleet:
    """Return a fleet in which the first task of the array has just ended well; `today` is its file by now."""
    ran = builders.lease(1, slot=Slot("sweep", 0), guard_run=1, spec_digest=reload.spec_digest(array()), **changes)
    lease = kept_terms.recorded(ran, array())
    end = GuardEnd(version=1, lease=lease.intent_id, code=0, done=True)
    beat = GuardBeat(version=1, sequence=8, lease=lease.intent_id, phase="done")
    report = GuardReport(NOW, beat, NOW, end, unfinished_at=NOW)
    return builders.fleet(
        workloads=(today,),
        leases=(lease,),
        markets={"vast": builders.view(instances=(builders.instance(1),))},
        guard_reports={lease.intent_id: report},
        guard_figures={lease.lease_id: GuardFigures(lease.lease_id, lease.slot, "vast", lease.host_id, 1, 1, NOW)},
        starts=(Start(lease.lease_id, "vast", NOW, 900.0),),
        holds=(OperatorHold(Word.DONE, hold.of_slot(lease.slot), NOW, "its end"),),
    )


def kept(today: Workload | None = None, **changes: Any) -> list[str]:
    fleet = seen(today or array(), **changes)
    (lease,) = fleet.leases
    ending = Release(lease, Reason(finished_hosts.DONE, "its work is done"))
    found = finished_hosts.finished(fleet, [ending], {lease.lease_id: 1}, cooldowns.in_force(fleet))
    return [each.lease_id for each, _, _ in found]


@pytest.mark.parametrize(
    ("leaves", "is_kept"),
    [
        ({}, True),
        ({"notice_at": NOW + timedelta(minutes=5)}, False),
        ({"maintenance_told_at": NOW}, False),
        ({"ends_at": NOW + timedelta(minutes=20)}, False),
    ],
)
def test_a_host_that_is_about_to_go_takes_no_other_task(leaves: dict[str, Any], is_kept: bool) -> None:
    assert bool(kept(**leaves)) is is_kept


def test_a_host_that_the_file_does_not_allow_any_more_takes_no_other_task() -> None:
    """Task after task went on with a host that an operator had just excluded."""
    wants = replace(array().requirements, regions=("US",))
    assert kept(replace(array(), requirements=wants)) == []


@pytest.mark.parametrize(("markets", "goes_on"), [(("vast",), True), (("runpod",), False)])
def test_on_a_fallback_market_that_is_closed_again_no_task_goes_on(markets: tuple[str, ...], goes_on: bool) -> None:
    """After an outage of an hour the rest of an array ran where it was dear."""
    other = "runpod" if goes_on else "vast"
    one = ArrayTerms(1, task_hours=0.1)
    fleet = seen(replace(array(), markets=markets, fallback=Fallback((other,)), array=one))
    decisions = plan.plan(fleet, {"patient": builders.tuned(Patient(), PatientParams())}, Limits()).decisions
    on_host = [type(each) for each in decisions if getattr(each, "kept", None) is not None or isinstance(each, Release)]
    assert on_host == [Rent if goes_on else Release]
