"""What a listing says happened: ignorance is never a loss, one look is never a loss, gone needs proof."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.decide import reconcile
from agent.decide.facts import Alert, LeaseChanged
from agent.decide.memory import Memory
from agent.decide.reconcile import Reconciliation
from agent.domain.fleet import Fleet
from agent.domain.instance import Instance, InstanceState
from agent.domain.interruption import Cause
from agent.domain.lease import ALLOWED, Bills, Lease, LeaseState
from agent.domain.money import UsdPerHour
from agent.domain.tenure import Tenure
from agent.domain.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
POLL = timedelta(seconds=15)
LOST = [InstanceState.PAUSED, InstanceState.EXITED, InstanceState.OFFLINE, InstanceState.FAILED]


def seen(held: Lease, *rows: Instance, at: int = 0, memory: Memory | None = None, **changes: Any) -> Reconciliation:
    """Reconcile one lease with a listing taken `at` polls after `NOW`."""
    return all_seen((held,), *rows, at=at, memory=memory, **changes)


def all_seen(
    held: tuple[Lease, ...], *rows: Instance, at: int = 0, memory: Memory | None = None, **changes: Any
) -> Reconciliation:
    return reconcile.reconcile(world(held, *rows, at=at, **changes), memory or Memory())


def world(held: tuple[Lease, ...], *rows: Instance, at: int = 0, **changes: Any) -> Fleet:
    now = NOW + at * POLL
    work = changes.pop("work", builders.workload(slots=9))
    view = builders.view(
        instances=rows,
        listed_at=now,
        listed_monotonic=1000.0 + at * 15,
        listings=10 + at,
        **changes,
    )
    return builders.fleet(leases=held, now=now, workloads=(work,), markets={"vast": view})


def changed(result: Reconciliation) -> LeaseChanged:
    """Return the one fact, insisting that it is a change of a lease."""
    (fact,) = [fact for fact in result.facts if isinstance(fact, LeaseChanged)]
    return fact


RUNS = builders.lease()
STARTS = builders.lease(state=LeaseState.STARTING, state_since=builders.ago(minutes=2))
ROW = builders.instance()


def test_an_unchanged_world_yields_nothing() -> None:
    result = seen(RUNS, ROW)
    assert result.facts == ()
    assert result.suspects == frozenset()


def test_a_view_that_is_not_fresh_yields_nothing_and_forgets_nothing() -> None:
    memory = seen(RUNS, builders.instance(state=InstanceState.PAUSED)).memory
    for changes in ({"is_fresh": False}, {"listed_at": None}):
        fleet = world((RUNS,))
        fleet = replace(fleet, markets={"vast": replace(fleet.markets["vast"], **changes)})
        result = reconcile.reconcile(fleet, memory)
        assert (result.facts, result.memory, result.faulty) == ((), memory, frozenset())


@pytest.mark.parametrize(
    "held", [RUNS, STARTS, builders.lease(state=LeaseState.PAUSED)], ids=lambda held: held.state.value
)
def test_a_state_nobody_knows_is_ignorance_not_an_interruption(held: Lease) -> None:
    memory = Memory()
    for at in range(40):
        result = seen(held, builders.instance(state=InstanceState.UNKNOWN), at=at, memory=memory)
        assert result.facts == ()
        memory = result.memory


@pytest.mark.parametrize("held", [RUNS, STARTS], ids=lambda held: held.state.value)
@pytest.mark.parametrize("state", LOST, ids=lambda state: state.value)
def test_one_look_is_never_a_loss_two_are(held: Lease, state: InstanceState) -> None:
    row = builders.instance(state=state)
    first = seen(held, row)
    assert first.facts == ()
    assert first.suspects == {"vast-1"}
    second = seen(held, row, at=1, memory=first.memory)
    fact = changed(second)
    assert fact.cause is not None
    assert fact.evidence is not None
    assert fact.after.state is reconcile.STATES[state]
    assert second.suspects == frozenset()


def test_a_loss_that_was_not_one_is_forgotten() -> None:
    first = seen(RUNS, builders.instance(state=InstanceState.PAUSED))
    back = seen(RUNS, ROW, at=1, memory=first.memory)
    assert back.facts == ()
    again = seen(RUNS, builders.instance(state=InstanceState.PAUSED), at=2, memory=back.memory)
    assert again.facts == ()
    assert again.suspects == {"vast-1"}


def test_two_different_losses_are_two_first_looks() -> None:
    first = seen(RUNS, builders.instance(state=InstanceState.OFFLINE))
    second = seen(RUNS, builders.instance(state=InstanceState.PAUSED), at=1, memory=first.memory)
    assert second.facts == ()
    assert changed(seen(RUNS, builders.instance(state=InstanceState.PAUSED), at=2, memory=second.memory)).cause


def lose(
    held: Lease = RUNS, state: InstanceState = InstanceState.PAUSED, row: Any = None, **changes: Any
) -> LeaseChanged:
    """Look twice at a loss."""
    row = row or builders.instance(state=state)
    first = seen(held, row, **changes)
    return changed(seen(held, row, at=1, memory=first.memory, **changes))


def test_an_outbid_remembers_what_must_be_beaten() -> None:
    told = builders.event(at=NOW, new_floor=builders.per_hour("0.30"))
    fact = lose(events=(told,))
    assert (fact.kind, fact.cause) == ("lease.interrupted", Cause.OUTBID)
    assert fact.after.rival_floor == builders.per_hour("0.305")
    assert fact.after.interrupted_by is Cause.OUTBID


def test_a_lost_start_is_no_interruption() -> None:
    assert lose(STARTS).kind == "lease.start_lost"


def test_a_failed_start_is_marked_and_its_host_rests() -> None:
    fact = lose(STARTS, InstanceState.FAILED)
    assert fact.kind == "lease.failed"
    assert fact.after.has_failed
    assert fact.after.end_reason.startswith("start_failed")
    assert fact.cooldown is not None
    assert (fact.cooldown.scope, fact.cooldown.key) == ("host", "h1")


def test_a_host_that_went_offline_rests_and_bills_nothing() -> None:
    fact = lose(state=InstanceState.OFFLINE)
    assert fact.cooldown is not None
    assert fact.after.bills is Bills.NOTHING
    assert lose().cooldown is None


def test_a_stop_of_our_own_is_no_loss() -> None:
    held = builders.lease(state=LeaseState.STARTING, paused_by_us=True)
    fact = changed(seen(held, builders.instance(state=InstanceState.PAUSED)))
    assert (fact.kind, fact.cause) == ("lease.paused", None)


@pytest.mark.parametrize(
    ("held", "state", "kind"),
    [
        (STARTS, InstanceState.RUNNING, "lease.running"),
        (builders.lease(state=LeaseState.PAUSED), InstanceState.RUNNING, "lease.resumed"),
        (builders.lease(state=LeaseState.MISSING), InstanceState.RUNNING, "lease.resumed"),
        (builders.lease(state=LeaseState.PAUSED), InstanceState.LOADING, "lease.starting"),
        (builders.lease(state=LeaseState.PAUSED), InstanceState.OFFLINE, "lease.offline"),
        (builders.lease(state=LeaseState.OFFLINE), InstanceState.EXITED, "lease.exited"),
        (builders.lease(state=LeaseState.OFFLINE), InstanceState.FAILED, "lease.paused"),
    ],
    ids=str,
)
def test_what_needs_no_second_look(held: Lease, state: InstanceState, kind: str) -> None:
    fact = changed(seen(held, builders.instance(state=state)))
    assert fact.kind == kind
    assert fact.cause is None


def test_a_return_clears_what_was_lost() -> None:
    held = builders.lease(
        state=LeaseState.PAUSED, has_run=False, interrupted_by=Cause.OUTBID, rival_floor=builders.per_hour("0.3")
    )
    after = changed(seen(held, ROW)).after
    assert (after.has_run, after.interrupted_by, after.paused_by_us) == (True, None, False)
    assert after.run_since is not None
    assert after.bills is Bills.GPU_AND_DISK


def test_running_is_metered_every_five_minutes_without_an_event() -> None:
    held = builders.lease(accrued_until=NOW - reconcile.METER_EVERY)
    fact = changed(seen(held, ROW))
    assert fact.kind == ""
    assert fact.after.accrued_until == NOW
    assert sum(charge.gpu.micros for charge in fact.charges) == builders.per_hour("0.22").over(300).micros
    almost = builders.lease(accrued_until=NOW - reconcile.METER_EVERY + timedelta(seconds=1))
    assert seen(almost, ROW).facts == ()


def test_dear_traffic_is_metered_at_once() -> None:
    row = builders.instance(traffic_down_gb=5.0, traffic_down_micros_per_gb=1000)
    fact = changed(seen(RUNS, row))
    assert [charge.traffic.micros for charge in fact.charges if charge.traffic.micros] == [5000]
    cheap = builders.instance(traffic_down_gb=1.0, traffic_down_micros_per_gb=1000)
    assert seen(RUNS, cheap).facts == ()


def test_a_changed_price_is_taken_over_and_the_old_bid_remembered() -> None:
    row = builders.instance(gpu_rate=builders.per_hour("0.30"))
    after = changed(seen(RUNS, row)).after
    assert (after.gpu_rate, after.recent_bids) == (builders.per_hour("0.30"), (builders.per_hour("0.22"),))
    assert after.bid_since == NOW
    asked = builders.lease(tenure=Tenure.ON_DEMAND)
    kept = changed(seen(asked, builders.instance(tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.30")))).after
    assert kept.recent_bids == ()


def test_a_turn_is_dated_halfway_between_two_looks() -> None:
    memory = seen(RUNS, ROW).memory
    row = builders.instance(state=InstanceState.PAUSED)
    first = seen(RUNS, row, at=4, memory=memory)
    fact = changed(seen(RUNS, row, at=5, memory=first.memory))
    assert fact.after.state_since == NOW + 2 * POLL
    assert sum(charge.gpu.micros for charge in fact.charges) == builders.per_hour("0.22").over(30).micros
    assert sum(charge.running_seconds for charge in fact.charges) == 30


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
    fact = changed(seen(RUNS, ROW, at=21, events=(back, stop)))
    assert sum(charge.running_seconds for charge in fact.charges) == 60 + 75
    assert fact.after.bills is Bills.GPU_AND_DISK


CHECKPOINT = Checkpoint(timedelta(minutes=20), timedelta(minutes=1), place=CheckpointPlace.REMOTE)


def test_a_lost_stretch_is_useful_up_to_its_last_checkpoint() -> None:
    work = builders.workload(checkpoint=CHECKPOINT)
    fact = lose(work=work)
    assert sum(charge.useful_seconds for charge in fact.charges) == 2 * 20 * 60


def test_a_stretch_of_a_workload_nobody_knows_keeps_the_usual_promise() -> None:
    work = builders.workload("another", checkpoint=CHECKPOINT)
    fact = lose(work=work)
    assert sum(charge.useful_seconds for charge in fact.charges) == 3 * 15 * 60


def missed(
    held: tuple[Lease, ...],
    polls: int,
    *,
    memory: Memory | None = None,
    rows: tuple[Instance, ...] = (),
    **changes: Any,
) -> list[Reconciliation]:
    """Look at listings that lack the leases, carrying over what each look changed."""
    results = []
    by_id = {lease.lease_id: lease for lease in held}
    memory = memory or Memory()
    for at in range(1, polls + 1):
        result = all_seen(tuple(by_id.values()), *rows, at=at, memory=memory, **changes)
        memory = result.memory
        for fact in result.facts:
            if isinstance(fact, LeaseChanged):
                assert fact.after.state is fact.before.state or fact.after.state in ALLOWED[fact.before.state]
                by_id[fact.after.lease_id] = fact.after
        by_id = {key: lease for key, lease in by_id.items() if lease.is_open}
        results.append(result)
    return results


DENIED = {"absent_ids": frozenset({"1"})}


def kinds(results: list[Reconciliation]) -> list[str]:
    return [fact.kind for result in results for fact in result.facts if isinstance(fact, LeaseChanged)]


def test_absence_is_first_a_question_then_missing_and_only_with_proof_gone() -> None:
    results = missed((RUNS,), 12, **DENIED)
    assert results[0].facts == ()
    assert results[0].to_probe == {"1"}
    assert results[0].suspects == {"vast-1"}
    assert kinds(results) == ["lease.missing", "lease.interrupted"]
    gone_at = next(at for at, result in enumerate(results) if "lease.interrupted" in kinds([result]))
    assert gone_at * 15 >= reconcile.GONE_AFTER


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


def test_what_is_gone_is_charged_until_it_was_last_seen() -> None:
    memory = seen(RUNS, ROW).memory
    work = builders.workload(checkpoint=CHECKPOINT)
    results = missed((RUNS,), 12, memory=memory, work=work, **DENIED)
    fact = changed(next(result for result in results if "lease.interrupted" in kinds([result])))
    assert (fact.cause, fact.after.end_reason) == (Cause.HOST_GONE, "host_gone")
    assert sum(charge.gpu.micros for charge in fact.charges) == 0
    assert sum(charge.useful_seconds for charge in fact.charges) == 2 * 20 * 60
    assert fact.after.run_since is None
    assert fact.cooldown is not None


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
    assert result.memory.absences == {}


def test_a_release_in_doubt_ends_only_with_proof_and_counts_its_last_stretch() -> None:
    held = builders.lease(state=LeaseState.RELEASING, run_since=builders.ago(hours=1), bills=Bills.GPU_AND_DISK)
    assert kinds(missed((held,), 30)) == []
    fact = changed(next(result for result in missed((held,), 30, **DENIED) if kinds([result])))
    assert (fact.kind, fact.cause) == ("lease.released", None)
    assert sum(charge.useful_seconds for charge in fact.charges) == 3540


def test_a_release_stays_one_whatever_the_row_says() -> None:
    held = builders.lease(state=LeaseState.RELEASING, bills=Bills.DISK)
    for state in InstanceState:
        result = seen(held, builders.instance(state=state))
        for fact in result.facts:
            assert isinstance(fact, LeaseChanged)
            assert fact.after.state is LeaseState.RELEASING


def crowd(number: int) -> tuple[Lease, ...]:
    return tuple(builders.lease(index, slot=builders.slot("train", index)) for index in range(number))


ALL_DENIED = {"absent_ids": frozenset(str(index) for index in range(9))}


def test_several_vanishing_at_once_are_the_markets_fault() -> None:
    results = missed(crowd(3), 60, **ALL_DENIED)
    assert all(result.faulty == {"vast"} for result in results)
    assert {fact.code for result in results for fact in result.facts if isinstance(fact, Alert)} == {"market_fault"}
    assert set(kinds(results)) == {"lease.missing"}
    alert = next(fact for fact in results[0].facts if isinstance(fact, Alert))
    assert "0, 1, 2" in alert.sentence


def test_a_fault_ends_when_they_are_listed_again() -> None:
    held = crowd(3)
    memory = missed(held, 3, **ALL_DENIED)[-1].memory
    rows = tuple(builders.instance(index) for index in range(3))
    back = all_seen(held, *rows, at=4, memory=memory)
    assert back.faulty == frozenset()
    assert not any(isinstance(fact, Alert) for fact in back.facts)


def test_after_an_hour_of_the_markets_own_denial_even_many_are_believed_gone() -> None:
    results = missed(crowd(2), int(reconcile.FAULT_PATIENCE / 15) + 3, **ALL_DENIED)
    assert kinds(results).count("lease.interrupted") == 2
    assert results[-1].faulty == frozenset()


def test_leases_that_vanish_one_after_another_are_no_fault() -> None:
    first, second = crowd(2)
    one_left = missed((first, second), 2, rows=(builders.instance(1),), **ALL_DENIED)
    assert all(result.faulty == frozenset() for result in one_left)
    both = all_seen((first, second), at=3, memory=one_left[-1].memory, **ALL_DENIED)
    assert both.faulty == frozenset()


def test_what_was_released_never_makes_a_fault() -> None:
    leaving = tuple(replace(lease, state=LeaseState.RELEASING, bills=Bills.NOTHING) for lease in crowd(4))
    result = all_seen(leaving)
    assert result.faulty == frozenset()
    assert kinds([result]) == ["lease.released"] * 4


def test_a_rent_that_is_not_what_was_asked_for_is_marked_at_once() -> None:
    row = builders.instance(state=InstanceState.LOADING, tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.40"))
    held = builders.lease(state=LeaseState.STARTING, has_run=False)
    fact = changed(seen(held, row))
    assert (fact.kind, fact.after.has_failed) == ("lease.mismatched", True)
    assert fact.after.end_reason.startswith("mismatch: it is on_demand")
    assert fact.after.gpu_rate == builders.per_hour("0.40")


@pytest.mark.parametrize(
    "changes",
    [{"has_run": True}, {"has_failed": True}, {"interrupted_by": Cause.OUTBID}, {"state": LeaseState.PAUSED}],
    ids=str,
)
def test_what_is_no_fresh_rent_is_not_held_to_what_was_asked(changes: dict[str, Any]) -> None:
    row = builders.instance(state=InstanceState.LOADING, gpu_rate=builders.per_hour("0.40"))
    held = builders.lease(**{"state": LeaseState.STARTING, "has_run": False, **changes})
    assert "lease.mismatched" not in kinds([seen(held, row)])


def test_one_market_forgets_nothing_of_another() -> None:
    elsewhere = builders.lease(2, market="runpod", slot=builders.slot("train", 1))
    work = builders.workload(slots=2)
    paused = builders.instance(state=InstanceState.PAUSED)
    other_row = builders.instance(2, market="runpod", state=InstanceState.PAUSED)
    views = {
        "vast": builders.view(instances=(paused,)),
        "runpod": builders.view(market="runpod", instances=(other_row,)),
    }
    fleet = builders.fleet(leases=(RUNS, elsewhere), workloads=(work,), markets=views)
    first = reconcile.reconcile(fleet, Memory())
    assert first.suspects == {"vast-1", "vast-2"}
    second = reconcile.reconcile(fleet, first.memory)
    assert sorted(fact.after.lease_id for fact in second.facts if isinstance(fact, LeaseChanged)) == [
        "vast-1",
        "vast-2",
    ]


def test_leases_that_ended_are_forgotten() -> None:
    memory = seen(RUNS, ROW).memory
    assert set(memory.last_seen) == {"vast-1"}
    assert all_seen((), memory=memory, at=1).memory.last_seen == {}


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
