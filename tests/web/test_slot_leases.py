"""The lease that represents a slot with several: one that is being released only stands in where there is no other."""

import itertools

import pytest

from agent.domain.record.lease import LeaseState
from agent.web.reading import slot_leases
from tests.support import builders

OLD, NEW = {"opened_at": builders.ago(hours=1)}, {"opened_at": builders.ago(minutes=5)}


@pytest.mark.parametrize(
    ("old", "new", "leads"),
    [
        (LeaseState.RELEASING, LeaseState.STARTING, "vast-2"),
        (LeaseState.RELEASING, LeaseState.PAUSED, "vast-2"),
        (LeaseState.PAUSED, LeaseState.RELEASING, "vast-1"),
        (LeaseState.RUNNING, LeaseState.STARTING, "vast-1"),
        (LeaseState.PAUSED, LeaseState.STARTING, "vast-2"),
        (LeaseState.RELEASING, LeaseState.RELEASING, "vast-2"),
    ],
)
def test_a_slot_is_represented_by_the_lease_on_which_its_work_goes_on(
    old: LeaseState, new: LeaseState, leads: str
) -> None:
    pair = builders.lease(1, state=old, **OLD), builders.lease(2, state=new, **NEW)
    for leases in itertools.permutations(pair):
        lease = slot_leases.lead(leases)
        assert lease is not None
        assert lease.lease_id == leads


def test_an_empty_slot_is_represented_by_none() -> None:
    assert slot_leases.lead(()) is None
