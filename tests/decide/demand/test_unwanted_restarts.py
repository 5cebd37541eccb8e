"""A slot that its demand does not want any more ends, and is not started again by a restart in place."""

import datetime as dt
from typing import Any

import msgspec

from agent.decide import plan
from agent.domain.market.instance import InstanceState
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot_demand import Demand, DemandFrom, HandDemand
from agent.domain.work.decision import Decision, Hold, Pause, Release, Resume
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from strategies.patient import Patient, PatientParams
from tests.support import builders
from tests.support.builders import NOW, ago

DEMAND = Demand(least=0, source=DemandFrom.HTTP, place="http://x", shrink_after=dt.timedelta(minutes=10))
RUNS = builders.lease(restart_at=ago(minutes=1), restarts=1)
ILL = msgspec.structs.replace(RUNS, unhealthy_since=ago(minutes=2), end_reason="unhealthy: no answer")
STOPPED = builders.lease(state=LeaseState.PAUSED, paused_by_us=True, restart_at=ago(minutes=1), restarts=1)
SHOWN = {LeaseState.RUNNING: InstanceState.RUNNING, LeaseState.PAUSED: InstanceState.PAUSED}


def decided(lease: Lease, place: CheckpointPlace, wanted: int = 0) -> Decision:
    work = builders.workload(slots=2, demand=DEMAND, checkpoint=Checkpoint(place=place))
    rows = (builders.instance(state=SHOWN[lease.state]),)
    settings: dict[str, Any] = {
        "workloads": (work,),
        "leases": (lease,),
        "markets": {"vast": builders.view(offers=(), instances=rows)},
        "hand_demands": {"train": HandDemand("train", wanted, NOW + dt.timedelta(hours=1))},
    }
    tuned = {"patient": builders.tuned(Patient(), PatientParams())}
    decisions = plan.plan(builders.fleet(**settings), tuned, builders.NO_LIMITS).decisions
    (mine,) = (each for each in decisions if getattr(each, "slot", lease.slot) == lease.slot)
    return mine


def code(decision: Decision) -> tuple[type[Decision], str]:
    return type(decision), decision.reason.code


def test_a_disk_that_is_kept_is_paused_and_stays_so() -> None:
    for lease in (RUNS, ILL):
        assert code(decided(lease, CheckpointPlace.DISK)) == (Pause, "not_wanted")
    assert code(decided(STOPPED, CheckpointPlace.DISK)) == (Hold, "not_wanted")


def test_a_disk_that_may_go_is_released_also_in_the_midst_of_a_restart() -> None:
    for lease in (RUNS, ILL, STOPPED):
        assert code(decided(lease, CheckpointPlace.REMOTE)) == (Release, "not_wanted")


def test_a_wanted_slot_is_restarted_as_before() -> None:
    assert code(decided(ILL, CheckpointPlace.DISK, wanted=1)) == (Pause, "restart")
    assert code(decided(STOPPED, CheckpointPlace.DISK, wanted=1)) == (Resume, "restart")
