"""A pause whose outcome is in doubt, and the listing that shows it done: the stop is ours, and nobody lost anything."""

import dataclasses
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import IntentSettled
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.reconcile import Reconciliation
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import LeaseState
from tests.support import builders
from tests.support.listings import NOW, POLL, RUNS, changed, world

PAUSE = builders.intent(kind=IntentKind.PAUSE, lease_id=RUNS.lease_id, instance_id=RUNS.instance_id)
STOPPED = builders.instance(state=InstanceState.PAUSED)


def stopped(*, at: int = 1, memory: Memory | None = None, intent: Any = PAUSE, **changes: Any) -> Reconciliation:
    fleet = msgspec.structs.replace(world((RUNS,), STOPPED, at=at, **changes), intents=(intent,))
    return reconcile.reconcile(fleet, memory or Memory())


def test_the_look_that_confirms_our_pause_shows_the_lease_paused_by_us() -> None:
    result = stopped()
    fact = changed(result)
    assert (fact.kind, fact.cause, fact.cooldown) == ("lease.paused", None, None)
    assert fact.before == RUNS
    assert (fact.after.state, fact.after.paused_by_us, fact.after.interrupted_by) == (LeaseState.PAUSED, True, None)
    (settled,) = [each for each in result.facts if isinstance(each, IntentSettled)]
    assert (settled.intent, settled.state) == (PAUSE, IntentState.CONFIRMED)
    assert result.memory.suspicions == {}


def test_a_pause_that_is_still_on_its_way_may_have_stopped_it_already() -> None:
    fact = changed(stopped(intent=dataclasses.replace(PAUSE, state=IntentState.SENT)))
    assert (fact.kind, fact.after.paused_by_us) == ("lease.paused", True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"events": (builders.event("outbid", at=NOW + POLL / 2),)}, Cause.DISPLACED),
        ({"credit": builders.usd("0")}, Cause.OUT_OF_CREDIT),
    ],
    ids=["outbid", "credit"],
)
def test_a_stop_for_which_the_market_shows_another_cause_is_a_loss(changes: dict[str, Any], why: Cause) -> None:
    first = stopped(**changes)
    assert [each for each in first.facts if not isinstance(each, IntentSettled)] == []
    fact = changed(stopped(at=2, memory=first.memory, **changes))
    assert (fact.kind, fact.cause, fact.after.paused_by_us) == ("lease.interrupted", why, False)


@pytest.mark.parametrize(
    "changes",
    [{"kind": IntentKind.REBID}, {"state": IntentState.RECORDED}, {"lease_id": "vast-2"}],
    ids=["another order", "never sent", "another lease"],
)
def test_a_stop_without_a_pause_of_it_in_doubt_is_a_loss(changes: dict[str, Any]) -> None:
    other = dataclasses.replace(PAUSE, **changes)
    first = stopped(intent=other)
    fact = changed(stopped(at=2, memory=first.memory, intent=other))
    assert (fact.kind, fact.after.paused_by_us) == ("lease.interrupted", False)


def test_the_pause_is_metered_up_to_the_look_and_all_its_work_is_kept() -> None:
    minutes = 10
    fact = changed(stopped(at=int(timedelta(minutes=minutes) / POLL)))
    assert sum(charge.running_seconds for charge in fact.charges) == pytest.approx(minutes * 60)
    assert sum(charge.useful_seconds for charge in fact.charges) == pytest.approx((60 + minutes / 2 - 1) * 60)


@pytest.mark.parametrize("why", ["unhealthy: port 8000 does not answer", "stalled: its work shows no progress; warn"])
def test_a_run_after_a_restart_has_no_reason_of_the_run_before(why: str) -> None:
    held = msgspec.structs.replace(RUNS, state=LeaseState.PAUSED, paused_by_us=True, has_run=True, end_reason=why)
    fact = changed(reconcile.reconcile(world((held,), builders.instance()), Memory()))
    assert (fact.kind, fact.after.end_reason) == ("lease.resumed", "")
    failed = msgspec.structs.replace(held, has_failed=True)
    fact = changed(reconcile.reconcile(world((failed,), builders.instance()), Memory()))
    assert fact.after.end_reason == why, "it is released for that reason"
