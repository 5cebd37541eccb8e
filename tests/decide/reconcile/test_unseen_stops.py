"""What nobody saw and the market's record tells.

A first start, before its host fell silent or we paused it: its disk may have the only checkpoint. And the time that a
lease ran while a rebid was in doubt.
"""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.reconcile import Reconciliation
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause, MarketEvent
from agent.domain.record.intent import IntentKind, IntentState
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import NOW, POLL, STARTS, kinds, seen, world

SILENT = builders.instance(state=InstanceState.OFFLINE)
NEVER_RAN = msgspec.structs.replace(STARTS, accrued_until=NOW, has_run=False)
STARTED = builders.event("started", at=NOW + timedelta(minutes=1))
"""The inbox of the market shows starts, and neither stops nor silent hosts."""


def found(lease: Lease, told: tuple[MarketEvent, ...], at: int, *, is_record_read: bool = True) -> Reconciliation:
    """Return the result of both looks at a silent host, `at` polls after the last one."""
    memory = seen(lease, SILENT, at=at, events=told, is_record_read=is_record_read).memory
    memory = replace(memory, last_seen={})
    return seen(lease, SILENT, at=at, memory=memory, events=told, is_record_read=is_record_read)


def last(result: Reconciliation) -> Lease:
    return [fact.after for fact in result.facts if isinstance(fact, LeaseChanged)][-1]


@pytest.mark.parametrize(
    ("told", "is_record_read", "polls", "has_run"),
    [((STARTED,), True, 8, True), ((), True, 240, False), ((), False, 240, True), ((), False, 4, False)],
    ids=["a start on record", "none on record", "no record", "no record for a minute"],
)
def test_what_started_unseen_before_its_host_fell_silent_has_run(
    told: tuple[MarketEvent, ...], polls: int, *, is_record_read: bool, has_run: bool
) -> None:
    result = found(NEVER_RAN, told, polls, is_record_read=is_record_read)
    assert (last(result).state, last(result).has_run) == (LeaseState.OFFLINE, has_run)
    assert kinds([result]) == (["lease.running", "lease.interrupted"] if told else ["lease.start_lost"])


@pytest.mark.parametrize(("told", "has_run"), [((STARTED,), True), ((), False)])
def test_what_started_unseen_before_our_own_pause_has_run(told: tuple[MarketEvent, ...], *, has_run: bool) -> None:
    """A kill paused it while its market answered no listing."""
    row, paused = builders.instance(state=InstanceState.PAUSED), msgspec.structs.replace(NEVER_RAN, paused_by_us=True)
    after = last(seen(paused, row, at=240, memory=Memory(last_seen={paused.lease_id: NOW}), events=told))
    assert (after.state, after.has_run) == (LeaseState.PAUSED, has_run)


def test_what_a_silent_host_started_after_its_return_has_run_when_it_is_silent_again() -> None:
    offline = msgspec.structs.replace(
        NEVER_RAN, state=LeaseState.OFFLINE, bills=Bills.NOTHING, loading_since=NOW - 8 * POLL
    )
    assert last(found(offline, (STARTED,), 240)).has_run
    assert not last(found(offline, (), 240, is_record_read=False)).has_run


@pytest.mark.parametrize("state", [InstanceState.PAUSED, InstanceState.EXITED])
@pytest.mark.parametrize(("polls", "has_run"), [(240, True), (4, False)], ids=["a dark hour", "a minute"])
def test_what_a_silent_host_may_have_started_in_a_dark_hour_without_a_record_has_run(
    state: InstanceState, polls: int, *, has_run: bool
) -> None:
    """Its GPUs count for that hour, too."""
    offline = msgspec.structs.replace(
        NEVER_RAN, state=LeaseState.OFFLINE, bills=Bills.NOTHING, loading_since=NOW - 8 * POLL
    )
    memory = Memory(last_seen={offline.lease_id: NOW})
    row = builders.instance(state=state)
    assert last(seen(offline, row, at=polls, memory=memory, is_record_read=False)).has_run is has_run


@pytest.mark.parametrize(
    ("shown", "hours"), [(InstanceState.PAUSED, 1.0), (InstanceState.RUNNING, 1.5)], ids=["stopped again", "runs again"]
)
@pytest.mark.parametrize("bid", ["0.20", "0.40"], ids=["not shown", "shown"])
def test_what_ran_unseen_while_a_rebid_was_in_doubt_counts_at_the_higher_bid(
    bid: str, shown: InstanceState, hours: float
) -> None:
    """Nobody looks for two hours after a raise without an answer: the bid may have run on it all that time."""
    paused = builders.lease(
        state=LeaseState.PAUSED,
        bills=Bills.DISK,
        gpu_rate=builders.per_hour("0.20"),
        interrupted_by=Cause.OUTBID,
        run_since=None,
    )
    order = builders.intent(
        kind=IntentKind.REBID,
        state=IntentState.IN_DOUBT,
        lease_id=paused.lease_id,
        price=builders.per_hour("0.40"),
    )
    told = [builders.event("started", at=NOW + timedelta(minutes=10)), builders.event("outbid", at=NOW + 280 * POLL)]
    if shown is InstanceState.RUNNING:
        told.append(builders.event("started", at=NOW + 360 * POLL))
    row = builders.instance(state=shown, gpu_rate=builders.per_hour(bid))
    fleet = msgspec.structs.replace(world((paused,), row, at=480, events=tuple(told)), intents=(order,))
    facts = [fact for fact in reconcile.reconcile(fleet, Memory()).facts if isinstance(fact, LeaseChanged)]
    assert facts[0].before == paused
    spent = sum(charge.gpu.micros for fact in facts for charge in fact.charges)
    assert spent == pytest.approx(0.40e6 * hours, abs=2)
    assert facts[-1].after.gpu_rate == builders.per_hour("0.40")
