"""The releases of slots that are held because their GPUs idle."""

import pytest

from agent.decide import slot_releases
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import LeaseState
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders
from tests.support.builders import NOW


@pytest.mark.parametrize(
    ("ground", "is_released"),
    [("its GPUs are used below 5 % since 11:00 UTC at $0.22/h", True), ("its work shows no progress", False)],
)
def test_a_slot_held_for_idle_gpus_is_released_also_after_a_pause_and_one_held_for_a_person_is_not(
    ground: str, is_released: bool
) -> None:
    """A health request during the drain made the release a pause, whose disk billed until a person came."""
    work = builders.workload(idle=IdleRule(then=OnIdle.RELEASE), checkpoint=Checkpoint(place=CheckpointPlace.REMOTE))
    held = OperatorHold(Word.HELD, hold.of_slot(builders.TRAIN_0), NOW, ground)
    stopped = builders.lease(state=LeaseState.PAUSED, paused_by_us=True)
    for lease, state in ((builders.lease(), InstanceState.RUNNING), (stopped, InstanceState.PAUSED)):
        view = builders.view(instances=(builders.instance(state=state),))
        found = slot_releases.releases(
            builders.fleet(leases=(lease,), workloads=(work,), holds=(held,), markets={"vast": view})
        )
        assert [each.reason.code for each in found] == ["idle"] * is_released
