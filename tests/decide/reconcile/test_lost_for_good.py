"""A lost lease on a market that keeps nothing of it is released, unless its disk may still have the only copy."""

from typing import Any

import pytest
from msgspec.structs import replace

from agent.decide.reconcile.losses import lost_for_good
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.market.market_rules import ASSUMED, Survives
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOTHING = replace(ASSUMED, survives=Survives.NOTHING)
LOST: dict[str, Any] = {
    "state": LeaseState.OFFLINE,
    "bills": Bills.NOTHING,
    "interrupted_by": Cause.HOST_OFFLINE,
    "has_run": True,
}
ELSEWHERE = {"checkpoint": Checkpoint(place=CheckpointPlace.REMOTE)}
ON_ITS_DISK = {"checkpoint": Checkpoint(place=CheckpointPlace.DISK)}


def seen(held: dict[str, Any], work: dict[str, Any], rules: Any = NOTHING) -> Fleet:
    lease = builders.lease(**LOST | held)
    row = builders.instance(1, instance_id=lease.instance_id)
    view = builders.view(rules=rules, instances=(row,))
    return builders.fleet(leases=(lease,), workloads=(builders.workload(**work),), markets={"vast": view})


@pytest.mark.parametrize(
    ("held", "work", "is_released"),
    [
        ({}, ON_ITS_DISK, True),
        ({"state": LeaseState.PAUSED}, ON_ITS_DISK, True),
        ({"bills": Bills.GPU_AND_DISK}, ELSEWHERE, True),
        ({"bills": Bills.GPU_AND_DISK}, ON_ITS_DISK, False),
        ({"state": LeaseState.RUNNING}, ELSEWHERE, False),
        ({"state": LeaseState.RELEASING}, ELSEWHERE, False),
        ({"interrupted_by": None}, ELSEWHERE, False),
        ({"is_held": True}, ELSEWHERE, False),
    ],
    ids=str,
)
def test_only_a_lost_lease_is_released(held: dict[str, Any], work: dict[str, Any], is_released: bool) -> None:
    found = [order.reason.code for order in lost_for_good.releases(seen(held, work))]
    assert found == ([lost_for_good.CODE] if is_released else [])


def test_a_market_that_keeps_the_disk_gives_nothing_up() -> None:
    assert list(lost_for_good.releases(seen({}, ELSEWHERE, ASSUMED))) == []
