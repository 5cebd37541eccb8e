"""A start whose answer was lost, and the listing that shows it done: the lease is no longer stopped by us."""

from typing import Any

import msgspec
import pytest

from agent.decide.facts import IntentSettled
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, LeaseState
from tests.support import builders
from tests.support.listings import RUNS, changed, world

STOPPED = msgspec.structs.replace(
    RUNS, state=LeaseState.PAUSED, paused_by_us=True, has_run=True, run_since=None, bills=Bills.DISK
)
START = builders.intent(kind=IntentKind.RESUME, lease_id=RUNS.lease_id, instance_id=RUNS.instance_id)


def looked(lease: Any = STOPPED, intent: Any = START, **row: Any) -> reconcile.Reconciliation:
    fleet = msgspec.structs.replace(world((lease,), builders.instance(**row)), intents=(intent,))
    return reconcile.reconcile(fleet, Memory())


@pytest.mark.parametrize("tenure", list(Tenure))
@pytest.mark.parametrize("cause", [None, Cause.OUTBID])
def test_a_start_that_only_the_market_still_has_to_make_counts_whole_and_is_queued(
    tenure: Tenure, cause: Cause | None
) -> None:
    held = msgspec.structs.replace(STOPPED, tenure=tenure, interrupted_by=cause)
    result = looked(held, tenure=tenure, state=InstanceState.PAUSED, is_wanted_running=True)
    fact = changed(result)
    assert (fact.kind, fact.before) == ("lease.queued", held)
    after = fact.after
    assert (after.state, after.paused_by_us, after.interrupted_by) == (LeaseState.PAUSED, False, cause)
    assert (after.may_start, after.is_down) == (True, False)
    assert after.committed_rate == held.most_gpu_rate + held.disk_rate
    (settled,) = [each for each in result.facts if isinstance(each, IntentSettled)]
    assert (settled.intent, settled.state) == (START, IntentState.CONFIRMED)


@pytest.mark.parametrize("state", [InstanceState.LOADING, InstanceState.PENDING])
def test_a_start_that_loads_counts_whole(state: InstanceState) -> None:
    fact = changed(looked(state=state))
    assert (fact.kind, fact.before) == ("lease.starting", STOPPED)
    assert (fact.after.state, fact.after.paused_by_us) == (LeaseState.STARTING, False)
    assert fact.after.committed_rate == STOPPED.most_gpu_rate + STOPPED.disk_rate


def test_an_unclear_state_that_the_market_wants_to_run_counts_whole() -> None:
    fact = changed(looked(state=InstanceState.UNKNOWN, is_wanted_running=True))
    assert (fact.before, fact.after.state, fact.after.paused_by_us) == (STOPPED, LeaseState.PAUSED, False)


def test_what_the_listing_does_not_show_done_stays_as_it_was() -> None:
    result = looked(state=InstanceState.PAUSED)
    assert all(getattr(fact, "after", STOPPED).paused_by_us for fact in result.facts)
    assert not [fact for fact in result.facts if isinstance(fact, IntentSettled)]
