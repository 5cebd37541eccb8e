"""A host is kept for another task only while it surely stays."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from agent.decide.kept_hosts import finished_hosts
from agent.decide.operators import reload
from agent.decide.pricing import cooldowns
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.slot import Slot
from agent.domain.work import kept_terms
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.deadline import Start
from agent.domain.work.decision import Reason, Release
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload, WorkloadKind
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


def kept(**changes: Any) -> list[str]:
    work = array()
    ran = builders.lease(1, slot=Slot("sweep", 0), guard_run=1, spec_digest=reload.spec_digest(work), **changes)
    lease = kept_terms.recorded(ran, work)
    end = GuardEnd(version=1, lease=lease.intent_id, code=0, done=True)
    beat = GuardBeat(version=1, sequence=8, lease=lease.intent_id, phase="done")
    report = GuardReport(NOW, beat, NOW, end, unfinished_at=NOW)
    fleet = builders.fleet(
        workloads=(work,),
        leases=(lease,),
        markets={"vast": builders.view(instances=(builders.instance(1),))},
        guard_reports={lease.intent_id: report},
        guard_figures={lease.lease_id: GuardFigures(lease.lease_id, lease.slot, "vast", lease.host_id, 1, 1, NOW)},
        starts=(Start(lease.lease_id, "vast", NOW, 900.0),),
    )
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
