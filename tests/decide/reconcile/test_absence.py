"""Absence is a question, then missing, and only with the market's own proof an end; many at once are its fault."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide.facts import Alert, LeaseChanged, LeaseDisowned
from agent.decide.reconcile import absence, reconcile
from agent.decide.reconcile.pass_memory import Absence, Memory
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import Intent, IntentKind, IntentState
from agent.domain.record.lease import ALLOWED, Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import (
    CHECKPOINT,
    DENIED,
    NOW,
    POLL,
    ROW,
    RUNS,
    all_seen,
    changed,
    kinds,
    missed,
    seen,
    world,
)


def test_absence_is_first_a_question_then_missing_and_only_with_proof_gone() -> None:
    results = missed((RUNS,), 12, **DENIED)
    assert results[0].facts == ()
    assert results[0].to_probe == {"1"}
    assert results[0].suspects == {"vast-1"}
    assert kinds(results) == ["lease.missing", "lease.interrupted"]
    gone_at = next(at for at, result in enumerate(results) if "lease.interrupted" in kinds([result]))
    assert gone_at * 15 >= absence.GONE_AFTER


@pytest.mark.parametrize("changes", [{}, {**DENIED, "is_key_proven": False}, {"absent_ids": frozenset({"2"})}], ids=str)
def test_without_proof_it_stays_missing_for_ever(changes: dict[str, Any]) -> None:
    results = missed((RUNS,), 400, **changes)
    assert kinds(results) == ["lease.missing"]
    assert results[-1].to_probe == {"1"}


def test_a_missing_lease_that_is_listed_again_goes_on() -> None:
    memory = missed((RUNS,), 5, **DENIED)[-1].memory
    back = seen(builders.lease(state=LeaseState.MISSING), ROW, at=6, memory=memory)
    assert changed(back).after.state is LeaseState.RUNNING
    assert back.memory.absences == {}


def test_what_is_gone_counts_up_to_the_first_listing_that_lacked_it() -> None:
    memory = seen(RUNS, ROW).memory
    work = builders.workload(checkpoint=CHECKPOINT)
    results = missed((RUNS,), 12, memory=memory, work=work, **DENIED)
    fact = changed(next(result for result in results if "lease.interrupted" in kinds([result])))
    assert (fact.cause, fact.after.end_reason) == (Cause.HOST_GONE, "host_gone")
    assert sum(charge.gpu.micros for charge in fact.charges) == RUNS.gpu_rate.over(POLL.total_seconds()).micros
    assert sum(charge.useful_seconds for charge in fact.charges) == 2 * 20 * 60
    assert fact.after.run_since is None
    assert fact.cooldown is not None


def test_a_stretch_that_stopped_before_its_instance_was_gone_is_useful_no_longer() -> None:
    """Stopped, started and stopped again unseen: the pause between counted as useful, and verify found it."""
    work = builders.workload(checkpoint=replace(CHECKPOINT, restore=timedelta()))
    since = RUNS.accrued_until
    held = msgspec.structs.replace(RUNS, run_since=since + timedelta(seconds=2) - CHECKPOINT.interval)
    told = tuple(
        builders.event(kind, at=since + timedelta(seconds=number))
        for number, kind in enumerate(("outbid", "resumed", "outbid"), 1)
    )
    memory = seen(held, ROW).memory
    results = missed((held,), 12, memory=memory, work=work, events=told, **DENIED)
    fact = changed(next(result for result in results if "lease.interrupted" in kinds([result])))
    assert sum(charge.useful_seconds for charge in fact.charges) == 0


def test_what_was_missing_before_a_restart_counts_up_to_when_it_was_found_so() -> None:
    """The listing that lacked it first is forgotten; each restart counted the whole time between again."""
    gone = msgspec.structs.replace(RUNS, state=LeaseState.MISSING, state_since=RUNS.accrued_until)
    results = missed((gone,), 12, memory=Memory(), **DENIED)
    fact = changed(next(result for result in results if "lease.interrupted" in kinds([result])))
    assert fact.after.accrued_until == RUNS.accrued_until
    assert sum(charge.gpu.micros for charge in fact.charges) == 0


def test_a_paused_lease_that_is_gone_was_not_interrupted_again() -> None:
    held = builders.lease(state=LeaseState.PAUSED)
    assert kinds(missed((held,), 12, **DENIED)) == ["lease.missing", "lease.gone"]


def test_a_contract_that_ended_says_so() -> None:
    held = builders.lease(ends_at=NOW + POLL)
    results = missed((held,), 12, **DENIED)
    fact = changed(next(result for result in results if "lease.interrupted" in kinds([result])))
    assert fact.cause is Cause.CONTRACT_END


def test_a_release_the_market_confirmed_ends_with_the_first_listing_without_it() -> None:
    held = builders.lease(state=LeaseState.RELEASING, bills=Bills.NOTHING)
    result = seen(held)
    assert changed(result).kind == "lease.released"
    assert changed(result).after.state is LeaseState.ENDED


def test_a_release_in_doubt_ends_only_with_proof_and_counts_its_last_stretch() -> None:
    held = builders.lease(state=LeaseState.RELEASING, run_since=builders.ago(hours=1), bills=Bills.GPU_AND_DISK)
    assert kinds(missed((held,), 30)) == []
    fact = changed(next(result for result in missed((held,), 30, **DENIED) if kinds([result])))
    assert (fact.kind, fact.cause) == ("lease.released", None)
    assert sum(charge.useful_seconds for charge in fact.charges) == 3540


def test_a_release_without_an_answer_counts_up_to_the_listing_that_lacks_it() -> None:
    """When the market carried it out nobody knows: not when it was sent."""
    held = builders.lease(state=LeaseState.RELEASING, bills=Bills.GPU_AND_DISK, accrued_until=builders.ago(minutes=30))
    sent = builders.intent(
        kind=IntentKind.RELEASE, lease_id="vast-1", sent_at=builders.ago(minutes=29), state=IntentState.IN_DOUBT
    )
    fleet = msgspec.structs.replace(world((held,), **DENIED), intents=(sent,))
    (fact,) = (fact for fact in reconcile.reconcile(fleet, Memory()).facts if isinstance(fact, LeaseChanged))
    assert (fact.kind, fact.after.accrued_until) == ("lease.released", NOW)
    assert sum(charge.running_seconds for charge in fact.charges) == 30 * 60


def _raise_in_doubt() -> tuple[Lease, Intent]:
    """Return a lease of ten minutes at the old bid, and a raise by $0.18 an hour that got no answer."""
    held = builders.lease(agreed_rate=builders.per_hour("0.22"), accrued_until=builders.ago(minutes=10))
    order = builders.intent(
        kind=IntentKind.REBID, state=IntentState.IN_DOUBT, lease_id=held.lease_id, price=builders.per_hour("0.40")
    )
    return held, order


def _gpu_dollars(fact: LeaseChanged) -> float:
    return sum(charge.gpu.dollars for charge in fact.charges)


def test_what_is_gone_under_a_raise_in_doubt_counts_at_the_higher_bid() -> None:
    """No listing since the order showed which bid was in force."""
    held, order = _raise_in_doubt()
    memory = Memory(absences={held.lease_id: Absence(1000.0 - absence.GONE_AFTER, 1, in_fault=False)})
    fleet = msgspec.structs.replace(world((held,), **DENIED), intents=(order,))
    found = reconcile.reconcile(fleet, memory).facts
    (fact,) = (fact for fact in found if isinstance(fact, LeaseChanged))
    hours = (fact.after.accrued_until - held.accrued_until) / timedelta(hours=1)
    assert (fact.after.state, hours > 0.1) == (LeaseState.ENDED, True)
    assert _gpu_dollars(fact) == pytest.approx(0.40 * hours, abs=1e-5)


def test_what_was_released_under_a_raise_in_doubt_counts_at_the_higher_bid_since_the_last_look() -> None:
    """The order itself counted the time before it at the old bid."""
    held, order = _raise_in_doubt()
    gone = msgspec.structs.replace(
        held, state=LeaseState.RELEASING, bills=Bills.NOTHING, accrued_until=builders.ago(minutes=1)
    )
    memory = Memory(last_seen={held.lease_id: held.accrued_until})
    fleet = msgspec.structs.replace(world((gone,)), intents=(order,))
    (fact,) = (fact for fact in reconcile.reconcile(fleet, memory).facts if isinstance(fact, LeaseChanged))
    assert fact.kind == "lease.released"
    assert _gpu_dollars(fact) == pytest.approx((0.40 - held.gpu_rate.dollars) * 9 / 60, abs=1e-5)


def test_what_was_rented_and_never_listed_counts_as_if_it_had_run() -> None:
    """The reply named it and no listing ever had it: its host may be gone, so it is disowned and counted."""
    rented = builders.ago(minutes=10)
    fresh = builders.lease(state=LeaseState.STARTING, has_run=False, proven_at=None, accrued_until=rented)
    results = missed((fresh,), 12, **DENIED)
    fact = next(fact for result in results for fact in result.facts if isinstance(fact, LeaseDisowned))
    assert fact.lease.accrued_until == NOW + POLL
    assert sum(charge.running_seconds for charge in fact.charges) == 600 + POLL.total_seconds()


def test_a_release_stays_one_whatever_the_row_says() -> None:
    held = builders.lease(state=LeaseState.RELEASING, bills=Bills.DISK, state_since=NOW)
    for state in InstanceState:
        result = seen(held, builders.instance(state=state))
        for fact in result.facts:
            assert isinstance(fact, LeaseChanged)
            assert fact.after.state is LeaseState.RELEASING


def crowd(number: int) -> tuple[Lease, ...]:
    return tuple(builders.lease(index, slot=builders.slot("train", index)) for index in range(number))


ALL_DENIED: dict[str, Any] = {"absent_ids": frozenset(str(index) for index in range(9))}


def test_several_vanishing_at_once_are_the_markets_fault() -> None:
    results = missed(crowd(3), 60, **ALL_DENIED)
    assert all(result.faulty == {"vast"} for result in results)
    assert {fact.code for result in results for fact in result.facts if isinstance(fact, Alert)} == {"market_fault"}
    assert set(kinds(results)) == {"lease.missing"}
    alert = next(fact for fact in results[0].facts if isinstance(fact, Alert))
    assert "0, 1, 2" in alert.sentence


def test_two_are_several() -> None:
    assert [result.faulty for result in missed(crowd(2), 3, **ALL_DENIED)] == [{"vast"}] * 3


def test_a_fault_ends_when_they_are_listed_again() -> None:
    held = crowd(3)
    memory = missed(held, 3, **ALL_DENIED)[-1].memory
    rows = tuple(builders.instance(index) for index in range(3))
    back = all_seen(held, *rows, at=4, memory=memory)
    assert back.faulty == frozenset()
    assert not any(isinstance(fact, Alert) for fact in back.facts)


def test_after_an_hour_of_the_markets_own_denial_even_many_are_believed_gone() -> None:
    results = missed(crowd(2), int(absence.FAULT_PATIENCE / 15) + 3, **ALL_DENIED)
    assert kinds(results).count("lease.interrupted") == 2
    assert results[-1].faulty == frozenset()


def test_leases_that_vanish_one_after_another_are_no_fault() -> None:
    first, second = crowd(2)
    one_left = missed((first, second), 2, rows=(builders.instance(1),), **ALL_DENIED)
    assert all(result.faulty == frozenset() for result in one_left)
    both = all_seen((first, second), at=3, memory=one_left[-1].memory, **ALL_DENIED)
    assert both.faulty == frozenset()


def test_what_was_released_never_makes_a_fault() -> None:
    leaving = tuple(
        msgspec.structs.replace(lease, state=LeaseState.RELEASING, bills=Bills.NOTHING) for lease in crowd(4)
    )
    result = all_seen(leaving)
    assert result.faulty == frozenset()
    assert kinds([result]) == ["lease.released"] * 4


rows_of = st.lists(st.none() | st.sampled_from(InstanceState), min_size=1, max_size=25)


@settings(max_examples=200)
@given(st.sampled_from(list(LeaseState)[:-1]), rows_of, st.booleans(), st.integers(0, 300_000))
def test_any_history_of_listings_keeps_the_rules(
    state: LeaseState, history: list[InstanceState | None], is_denied: bool, rate: int
) -> None:
    """Transitions are allowed ones, charges never go back, and an end without a denial does not happen."""
    held = builders.lease(state=state, gpu_rate=UsdPerHour(rate))
    memory = Memory()
    for at, shown in enumerate(history, start=1):
        rows = () if shown is None else (builders.instance(state=shown, gpu_rate=UsdPerHour(rate)),)
        changes = DENIED if is_denied and shown is None else {}
        result = seen(held, *rows, at=at * 4, memory=memory, **changes)
        memory = result.memory
        for fact in result.facts:
            if not isinstance(fact, LeaseChanged):
                continue
            assert fact.before == held
            assert fact.after.state is held.state or fact.after.state in ALLOWED[held.state]
            assert fact.after.accrued_until >= held.accrued_until
            assert all(charge.gpu.micros >= 0 and charge.running_seconds >= 0 for charge in fact.charges)
            assert sum(charge.running_seconds for charge in fact.charges) <= at * 60 + 1
            if fact.after.state is LeaseState.ENDED:
                assert shown is None
                assert is_denied or state is LeaseState.RELEASING
            held = fact.after
        if not held.is_open:
            return


def test_a_restart_does_not_begin_the_patience_with_a_fault_anew() -> None:
    """The ledger knows since when they are missing; two listings two minutes apart are still asked for."""
    missing = tuple(
        msgspec.structs.replace(lease, state=LeaseState.MISSING, state_since=builders.ago(hours=3))
        for lease in crowd(2)
    )
    results = missed(missing, int(absence.GONE_AFTER / 15) + 3, **ALL_DENIED)
    assert kinds(results).count("lease.interrupted") == 2
    assert kinds(results[:5]) == []
