"""A bid whose machine failed: given up after a minute, with the cooldown of a failed start. Unknown is not failed."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide import slot_releases
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.losses import failed_start
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record.lease import Bills, LeaseState
from tests.support import builders, second_price

FAILED, UNKNOWN = InstanceState.FAILED, InstanceState.UNKNOWN
WAITS = second_price.waiting(2, opened_at=builders.ago(minutes=3))


def fleet(state: InstanceState, at: timedelta = timedelta(), **changes: Any) -> Fleet:
    now = builders.NOW + at
    row = second_price.row(2, state=state, may_bill_gpu=True)
    view = second_price.view(instances=(row,), listed_at=now)
    return builders.fleet(leases=(WAITS,), markets={second_price.NAME: view}, now=now, **changes)


@pytest.mark.parametrize("state", [FAILED, UNKNOWN])
def test_a_failed_machine_of_a_bid_is_a_failed_start_once_listings_show_it_for_a_minute(state: InstanceState) -> None:
    """A machine with STATUS_ERROR was paid for until a person came."""
    memory, failed = Memory(), []
    for at in (timedelta(), failed_start.SHOWN_FOR / 2, failed_start.SHOWN_FOR):
        result = reconcile.reconcile(fleet(state, at), memory)
        failed.append(any(fact.kind == "lease.failed" for fact in result.facts if hasattr(fact, "kind")))
        memory = result.memory
    assert failed == [False, False, state is FAILED]


@pytest.mark.parametrize("state", [FAILED, UNKNOWN])
@pytest.mark.parametrize(("waited", "is_released"), [(11, False), (31, True)])
def test_the_new_lease_of_a_move_is_not_lost_while_its_state_is_unclear(
    state: InstanceState, waited: int, *, is_released: bool
) -> None:
    """An unreadable status, told for an hour, rented one slot seven times."""
    old = second_price.waiting(1, paused_by_us=True, opened_at=builders.ago(hours=2))
    new = second_price.waiting(
        2, state_since=builders.ago(minutes=waited), opened_at=builders.ago(minutes=waited), bills=Bills.GPU_AND_DISK
    )
    rows = [second_price.row(1, state=InstanceState.PAUSED), second_price.row(2, state=state, may_bill_gpu=True)]
    world = second_price.fleet(leases=(old, new), rows=rows)
    assert new.state is LeaseState.PAUSED
    assert [each.lease.instance_id for each in slot_releases.releases(world)] == [new.instance_id] * is_released
