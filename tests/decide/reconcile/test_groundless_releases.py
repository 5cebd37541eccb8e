"""A release that has not left is called off where its lease works for its slot again, and only there."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.operators import operator_holds
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.groundless_releases import OF_NO_USE
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.slot_releases import RELEASE_AGAIN, releases
from agent.domain.market.instance import InstanceState
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import NOW, ROW, world

LOST = builders.lease(
    state=LeaseState.RELEASING, state_since=builders.ago(minutes=5), end_reason="not_needed", bills=Bills.DISK
)
"""It was lost, and the program died after it had recorded the release."""
LEFT = builders.lease(
    state=LeaseState.RELEASING, state_since=builders.ago(minutes=5), end_reason="moved", run_since=builders.ago(hours=1)
)
"""It ran when it was to be released, because another lease had taken over."""
PAUSED = builders.lease(2, state=LeaseState.PAUSED, opened_at=builders.ago(minutes=30))
RUNS = builders.lease(2, opened_at=builders.ago(minutes=30))


def after(*leases: Lease, row: Any = ROW, **changes: Any) -> Lease:
    """Return the first of some leases after a listing that has `row` and the rows of the others."""
    rows = (row, *(builders.instance(2) for lease in leases[1:]))
    states = {lease.instance_id: lease.state for lease in leases[1:]}
    stopped = {each for each, state in states.items() if state is not LeaseState.RUNNING}
    rows = tuple(
        msgspec.structs.replace(each, state=InstanceState.PAUSED) if each.instance_id in stopped else each
        for each in rows
    )
    fleet = msgspec.structs.replace(world(leases, *rows), **changes)
    facts = reconcile.reconcile(fleet, Memory()).facts
    mine = [fact for fact in facts if isinstance(fact, LeaseChanged) and fact.before.lease_id == leases[0].lease_id]
    return mine[0].after if mine else leases[0]


@pytest.mark.parametrize("code", sorted(OF_NO_USE))
def test_what_runs_again_and_is_alone_goes_on(code: str) -> None:
    lease = after(msgspec.structs.replace(LOST, end_reason=code))
    assert (lease.state, lease.bills, lease.end_reason) == (LeaseState.RUNNING, Bills.GPU_AND_DISK, "")
    assert list(releases(world((lease,), ROW))) == []


def test_the_old_lease_of_a_move_goes_on_where_the_new_one_was_lost() -> None:
    assert after(LEFT, PAUSED).state is LeaseState.RUNNING
    assert after(LOST, PAUSED).state is LeaseState.RUNNING


def test_the_event_says_why() -> None:
    fact = next(fact for fact in reconcile.reconcile(world((LOST,), ROW), Memory()).facts)
    assert isinstance(fact, LeaseChanged)
    assert fact.evidence is not None
    assert (fact.kind, fact.evidence.rule) == ("lease.resumed", "release_called_off")


@pytest.mark.parametrize(
    "code", ["ordered", "done", "over_budget", "over_rate", "mismatch: it costs", "idle", "killed"]
)
def test_an_end_that_somebody_or_something_else_wants_is_carried_out(code: str) -> None:
    ending = msgspec.structs.replace(LOST, end_reason=code)
    assert after(ending).state is LeaseState.RELEASING
    assert [order.reason.code for order in releases(world((ending,), ROW))] == [RELEASE_AGAIN]


@pytest.mark.parametrize(
    "changes",
    [{"bills": Bills.NOTHING}, {"is_held": True}, {"proven_at": None}, {"slot": builders.slot("train", 9)}],
    ids=["confirmed", "held", "unproven", "no slot of it"],
)
def test_a_lease_that_is_not_surely_wanted_is_released(changes: dict[str, Any]) -> None:
    assert after(msgspec.structs.replace(LOST, **changes)).state is LeaseState.RELEASING


@pytest.mark.parametrize("state", [each for each in InstanceState if each is not InstanceState.RUNNING], ids=str)
def test_what_does_not_run_is_released(state: InstanceState) -> None:
    assert after(LOST, row=builders.instance(state=state)).state is LeaseState.RELEASING


def test_a_lease_whose_slot_runs_elsewhere_is_released() -> None:
    assert after(LEFT, RUNS).state is LeaseState.RELEASING
    assert after(LOST, RUNS).state is LeaseState.RELEASING


def test_a_lease_whose_slot_may_get_another_one_is_released() -> None:
    rent = builders.intent(9)
    assert after(LOST, intents=(rent,)).state is LeaseState.RELEASING


def test_a_release_that_may_have_left_is_sent_until_it_is_done() -> None:
    order = builders.intent(9, kind=IntentKind.RELEASE, lease_id=LOST.lease_id)
    assert after(LOST, intents=(order,)).state is LeaseState.RELEASING


def test_a_release_that_makes_room_for_a_move_is_not_called_off() -> None:
    """It was decided while the lease ran, alone in its slot."""
    assert after(LEFT).state is LeaseState.RELEASING
    again = msgspec.structs.replace(LEFT, run_since=LEFT.state_since + timedelta(minutes=1))
    assert after(again).state is LeaseState.RUNNING


def test_what_a_person_has_ended_meanwhile_ends_in_the_same_cycle() -> None:
    killed = OperatorHold(Word.DONE, hold.of_workload("train"), NOW, "a person")
    fleet = msgspec.structs.replace(world((after(LOST),), ROW), holds=(killed,))
    (order,) = operator_holds.orders(fleet, hold.in_force(fleet.holds, fleet.now))
    assert order.lease.lease_id == LOST.lease_id
