"""How the stops and starts of a lease are dated and metered, by listings and by the market's record."""

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.pass_memory import Memory
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause, MarketEvent
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import (
    CHECKPOINT,
    DENIED,
    NOW,
    POLL,
    ROW,
    RUNS,
    changed,
    kinds,
    missed,
    seen,
)


def test_a_stop_is_dated_halfway_between_two_looks_and_counts_up_to_the_later() -> None:
    memory = seen(RUNS, ROW).memory
    row = builders.instance(state=InstanceState.PAUSED)
    first = seen(RUNS, row, at=4, memory=memory)
    fact = changed(seen(RUNS, row, at=5, memory=first.memory))
    assert fact.after.state_since == NOW + 2 * POLL
    assert sum(charge.gpu.micros for charge in fact.charges) == builders.per_hour("0.22").over(60).micros
    assert sum(charge.running_seconds for charge in fact.charges) == 60


def test_a_start_counts_from_the_look_before_the_one_that_showed_it() -> None:
    held = builders.lease(state=LeaseState.PAUSED)
    memory = seen(held, builders.instance(state=InstanceState.PAUSED)).memory
    fact = changed(seen(held, ROW, at=4, memory=memory))
    assert fact.after.run_since == fact.after.state_since == NOW + 2 * POLL
    assert sum(charge.gpu.micros for charge in fact.charges) == builders.per_hour("0.22").over(60).micros
    told = builders.event("resumed", at=NOW + timedelta(seconds=40))
    dated = changed(seen(held, ROW, at=4, memory=memory, events=(told,)))
    assert sum(charge.gpu.micros for charge in dated.charges) == builders.per_hour("0.22").over(20).micros


def test_a_turn_is_dated_by_the_markets_own_record_where_it_has_one() -> None:
    memory = seen(RUNS, ROW).memory
    row = builders.instance(state=InstanceState.PAUSED)
    told = builders.event(at=NOW + timedelta(seconds=7), new_floor=builders.per_hour("0.30"))
    first = seen(RUNS, row, at=4, memory=memory, events=(told,))
    fact = changed(seen(RUNS, row, at=5, memory=first.memory, events=(told,)))
    assert fact.after.state_since == told.at
    assert sum(charge.running_seconds for charge in fact.charges) == 7


def test_a_stop_and_a_return_between_two_looks_are_metered_from_the_inbox() -> None:
    stop = builders.event("outbid", event_id="e1", at=NOW + timedelta(seconds=60))
    back = builders.event("resumed", event_id="e2", at=NOW + timedelta(seconds=240))
    result = seen(RUNS, ROW, at=21, events=(back, stop))
    assert kinds([result]) == ["lease.interrupted", "lease.resumed"]
    lost, resumed = (fact for fact in result.facts if isinstance(fact, LeaseChanged))
    assert sum(charge.running_seconds for charge in lost.charges) == 60
    assert (resumed.after.bills, resumed.after.accrued_until) == (Bills.GPU_AND_DISK, back.at)


def test_what_stopped_ran_again_and_stopped_unseen_was_useful_up_to_its_first_stop() -> None:
    stops = (("outbid", 600), ("resumed", 840), ("outbid", 900))
    told = [builders.event(kind, event_id=f"e{at}", at=NOW + timedelta(seconds=at)) for kind, at in stops]
    held = builders.lease(state=LeaseState.RELEASING, bills=Bills.GPU_AND_DISK, run_since=NOW)
    fact = changed(seen(held, builders.instance(state=InstanceState.PAUSED), at=64, events=tuple(told)))
    assert sum(charge.running_seconds for charge in fact.charges) == 660
    assert sum(charge.useful_seconds for charge in fact.charges) == 600 - 60


@pytest.mark.parametrize("state", [LeaseState.RELEASING, LeaseState.MISSING])
def test_what_stopped_and_runs_again_unseen_was_useful_up_to_its_stop_and_begins_anew(state: LeaseState) -> None:
    """Its stop and its return are no news of a lease that is released; its accounts have both."""
    stops = (("outbid", 600), ("resumed", 840))
    told = [builders.event(kind, event_id=f"e{at}", at=NOW + timedelta(seconds=at)) for kind, at in stops]
    held = builders.lease(state=state, bills=Bills.GPU_AND_DISK, run_since=NOW, ready_since=NOW)
    work = builders.workload(checkpoint=CHECKPOINT)
    result = seen(held, ROW, at=84, events=tuple(told), work=work)
    changes = [fact for fact in result.facts if isinstance(fact, LeaseChanged)]
    news = ["lease.interrupted", "lease.resumed", None] if state is LeaseState.MISSING else [None]
    assert [change.kind for change in changes] == news
    charges = [charge for change in changes for charge in change.charges]
    assert sum(charge.running_seconds for charge in charges) == 600 + (84 * 15 - 840)
    kept = 600 - 60 if state is LeaseState.RELEASING else 0
    assert sum(charge.useful_seconds for charge in charges) == kept
    after = changes[-1].after
    assert (after.run_since, after.ready_since) == (told[1].at, None)
    useful = sum(charge.phases.useful - charge.phases.spoiled for charge in charges if charge.phases)
    assert useful == (kept + 84 * 15 - 840 - 60) * 1_000_000


def test_a_silent_host_may_have_run_it_again_before_its_contract_ended() -> None:
    """No record shows that end, nor the host's return."""
    held = builders.lease(
        state=LeaseState.OFFLINE, bills=Bills.NOTHING, interrupted_by=Cause.HOST_OFFLINE, accrued_until=NOW
    )

    def ran(ends_at: datetime) -> float:
        paused = builders.instance(state=InstanceState.PAUSED, ends_at=ends_at)
        known = msgspec.structs.replace(held, ends_at=ends_at)
        fact = changed(seen(known, paused, at=20, credit=money.usd(1), is_record_read=True))
        return sum(charge.running_seconds for charge in fact.charges)

    assert ran(NOW + timedelta(seconds=200)) == 20 * 15
    assert ran(NOW + timedelta(days=1)) == 0


@pytest.mark.parametrize(
    ("paused_by_us", "why", "ran"),
    [(False, Cause.HOST_OFFLINE, 15), (False, Cause.OUTBID, 0), (True, Cause.HOST_OFFLINE, 0)],
)
def test_a_silent_host_may_have_run_it_again_before_it_was_gone(*, paused_by_us: bool, why: Cause, ran: float) -> None:
    held = builders.lease(
        state=LeaseState.OFFLINE,
        bills=Bills.NOTHING,
        interrupted_by=why,
        paused_by_us=paused_by_us,
        accrued_until=NOW,
    )
    facts = [fact for look in missed((held,), 12, **DENIED) for fact in look.facts if isinstance(fact, LeaseChanged)]
    assert facts[-1].after.state is LeaseState.ENDED
    assert sum(charge.running_seconds for fact in facts for charge in fact.charges) == ran


@pytest.mark.parametrize(("credit", "ran"), [(-1, 20 * 15), (1, 0)])
def test_a_silent_host_may_have_run_it_again_before_the_credit_ended_it(credit: int, ran: float) -> None:
    """No record shows a stop for want of credit; another stop has a record, with the time of the start."""
    held = builders.lease(state=LeaseState.OFFLINE, bills=Bills.NOTHING, interrupted_by=Cause.HOST_OFFLINE)
    paused = builders.instance(state=InstanceState.PAUSED)
    fact = changed(seen(held, paused, at=20, credit=money.usd(credit), is_record_read=True))
    since = (NOW - held.accrued_until).total_seconds() if ran else 0.0
    assert sum(charge.running_seconds for charge in fact.charges) == ran + since


OUTBID_AT = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("why", "told", "hours"),
    [
        (Cause.OUTBID, (builders.event("outbid", at=OUTBID_AT),), 1),
        (None, (builders.event("outbid", at=OUTBID_AT),), 1),
        (Cause.OUTBID, (), 2),
        (None, (), 2),
    ],
    ids=["given back, outbid", "started again, outbid", "given back, stopped", "started again, stopped"],
)
def test_a_start_that_is_missing_before_it_is_shown_stopped_may_have_run(
    why: Cause | None, told: tuple[MarketEvent, ...], hours: int
) -> None:
    """It loaded again at the last look; two dark hours later a listing lacks it, and the next one shows it stopped."""
    loads, stopped = (builders.instance(state=state) for state in (InstanceState.LOADING, InstanceState.PAUSED))
    held = builders.lease(state=LeaseState.STARTING, has_run=True, interrupted_by=why, state_since=NOW)
    dark = int(timedelta(hours=2) / POLL)
    looks = [(1, (loads,)), (dark, ()), (dark, ()), (dark + 1, (stopped,)), (dark + 1, (stopped,))]
    assert gpu_hours_of(held, looks, events=told) == pytest.approx(hours, abs=0.01)


@pytest.mark.parametrize(("state", "hours"), [(InstanceState.LOADING, 2), (InstanceState.PAUSED, 0)])
def test_a_start_that_was_given_back_counts_to_the_listing_that_first_lacked_it(
    state: InstanceState, hours: int
) -> None:
    row = builders.instance(state=state)
    loads = state is InstanceState.LOADING
    kept = LeaseState.STARTING if loads else LeaseState.PAUSED
    held = builders.lease(state=kept, has_run=True, interrupted_by=Cause.OUTBID, state_since=NOW)
    dark = int(timedelta(hours=2) / POLL)
    looks = [(1, (row,)), (dark, ()), (dark, ()), (dark + 9, ())]
    assert gpu_hours_of(held, looks, **DENIED) == pytest.approx(hours, abs=0.01)


def gpu_hours_of(held: Lease, looks: list[tuple[int, tuple[Instance, ...]]], **changes: Any) -> float:
    """Return the GPU hours that a series of looks counts, each as the number of its poll and its rows."""
    memory, seconds = Memory(), 0.0
    for at, rows in looks:
        result = seen(held, *rows, at=at, memory=memory, **changes)
        memory = result.memory
        if result.suspects and not any(isinstance(fact, LeaseChanged) for fact in result.facts):
            # The second look follows at once, and dates changes from the look before.
            memory = dataclasses.replace(memory, last_seen={held.lease_id: NOW + POLL})
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                seconds += sum(charge.running_seconds for charge in fact.charges)
                held = fact.after
    return seconds / 3600
