"""What a listing says happened: ignorance is never a loss, one look is never a loss, gone needs proof."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import reconcile, row_metering, unread_rows
from agent.decide.reconcile.pass_memory import Memory
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause, MarketEvent
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Bills, Lease, LeaseState
from tests.support import builders
from tests.support.listings import (
    CHECKPOINT,
    NOW,
    POLL,
    ROW,
    RUNS,
    STARTS,
    all_seen,
    changed,
    kinds,
    seen,
    world,
)

LOST = [InstanceState.PAUSED, InstanceState.EXITED, InstanceState.OFFLINE, InstanceState.FAILED]


def test_an_unchanged_world_yields_nothing() -> None:
    result = seen(RUNS, ROW)
    assert result.facts == ()
    assert result.suspects == frozenset()


def test_a_view_that_is_not_fresh_yields_nothing_and_forgets_nothing() -> None:
    memory = seen(RUNS, builders.instance(state=InstanceState.PAUSED)).memory
    doubted = replace(memory.suspicions[RUNS.lease_id], is_unanswered=True)
    memory = replace(memory, suspicions={RUNS.lease_id: doubted})
    for changes in ({"is_fresh": False}, {"listed_at": None}):
        fleet = world((RUNS,))
        view = msgspec.structs.replace(fleet.markets["vast"], **changes)
        fleet = msgspec.structs.replace(fleet, markets={"vast": view})
        result = reconcile.reconcile(fleet, memory)
        assert (result.facts, result.memory, result.faulty) == ((), memory, frozenset())


@pytest.mark.parametrize(
    "held", [RUNS, STARTS, builders.lease(state=LeaseState.PAUSED)], ids=lambda held: held.state.value
)
def test_a_state_nobody_knows_is_ignorance_not_an_interruption_but_counts_as_paid(held: Lease) -> None:
    memory, now = Memory(), held
    for at in range(40):
        result = seen(now, builders.instance(state=InstanceState.UNKNOWN), at=at, memory=memory)
        if now.bills is Bills.GPU_AND_DISK:
            assert result.facts == ()
        else:
            now = changed(result).after
        memory = result.memory
    assert now.bills is Bills.GPU_AND_DISK
    assert (now.state, now.run_since, now.interrupted_by) == (held.state, held.run_since, held.interrupted_by)
    leaving = msgspec.structs.replace(held, state=LeaseState.RELEASING, state_since=NOW)
    assert not seen(leaving, builders.instance(state=InstanceState.UNKNOWN)).facts


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
    assert fact.after.state is row_metering.STATES[state]
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
    assert fact.cooldown.place == ("host", "vast/h1")


def test_a_host_that_went_offline_rests_and_bills_nothing() -> None:
    fact = lose(state=InstanceState.OFFLINE)
    assert fact.cooldown is not None
    assert fact.after.bills is Bills.NOTHING
    assert lose().cooldown is None


def test_a_release_is_not_taken_for_confirmed_because_its_host_fell_silent() -> None:
    silent = builders.instance(state=InstanceState.OFFLINE)
    leaving = builders.lease(state=LeaseState.RELEASING, bills=Bills.GPU_AND_DISK)
    after = changed(seen(leaving, silent)).after
    assert (after.state, after.bills) == (LeaseState.RELEASING, Bills.DISK)
    assert not seen(msgspec.structs.replace(leaving, bills=Bills.NOTHING), silent).facts


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


@pytest.mark.parametrize(
    ("told", "kinds_told"),
    [((), ["lease.start_lost"]), ((builders.event("started", at=NOW),), ["lease.running", "lease.interrupted"])],
    ids=["no record", "a start on record"],
)
@pytest.mark.parametrize(
    ("minutes", "poll", "has_run"),
    [(60, POLL, True), (1, POLL, False), (10, timedelta(minutes=10), False)],
    ids=["a dark hour", "a minute", "a slow poll"],
)
def test_what_first_started_and_ended_in_a_dark_hour_has_run(
    told: tuple[MarketEvent, ...], kinds_told: list[str], *, minutes: int, poll: timedelta, has_run: bool
) -> None:
    """Its container ended, so it had begun: its disk may have the only checkpoint (rule 11).

    One that ended within a poll has failed at once, as far as anybody knows.
    """
    row = builders.instance(state=InstanceState.EXITED)
    starts = msgspec.structs.replace(STARTS, accrued_until=NOW - POLL, has_run=False)
    at = int(timedelta(minutes=minutes) / POLL)
    first = seen(starts, row, at=at, events=told, poll=poll)
    result = seen(starts, row, at=at, memory=replace(first.memory, last_seen={}), events=told, poll=poll)
    last = [fact.after for fact in result.facts if isinstance(fact, LeaseChanged)][-1]
    assert (last.state, last.has_run) == (LeaseState.EXITED, has_run)
    assert kinds([result]) == (kinds_told if has_run else ["lease.start_lost"])


@pytest.mark.parametrize(("at", "has_run"), [(241, True), (3, False)])
def test_a_start_that_is_missing_before_it_is_listed_as_stopped_may_have_run(at: int, *, has_run: bool) -> None:
    """Its market's record cannot be read, and a listing lacked it."""
    row = builders.instance(state=InstanceState.PAUSED)
    starts = msgspec.structs.replace(STARTS, accrued_until=NOW, has_run=False)
    first = seen(starts, at=at - 1)
    missing = changed(seen(starts, at=at - 1, memory=replace(first.memory, last_seen={}))).after
    assert missing.state is LeaseState.MISSING
    assert changed(seen(missing, row, at=at, is_record_read=False)).after.has_run is has_run


def test_what_bills_while_it_loads_may_have_run_in_an_hour_before_its_stop_is_listed() -> None:
    """Its disk may have the only checkpoint then (rule 11); one that was seen to load a moment ago has none."""
    row = builders.instance(state=InstanceState.PAUSED, bills_while_loading=True)
    for looked, has_run in ((builders.ago(hours=1), True), (NOW, False)):
        starts = msgspec.structs.replace(STARTS, accrued_until=looked, has_run=False)
        fact = changed(seen(starts, row, at=1, memory=seen(starts, row).memory))
        assert (fact.kind, fact.after.state, fact.after.has_run) == ("lease.start_lost", LeaseState.PAUSED, has_run)


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
    assert fact.kind is None
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


def test_a_lost_stretch_is_useful_up_to_its_last_checkpoint() -> None:
    work = builders.workload(checkpoint=CHECKPOINT)
    fact = lose(work=work)
    assert sum(charge.useful_seconds for charge in fact.charges) == 2 * 20 * 60


def test_a_stretch_of_a_workload_nobody_knows_keeps_the_usual_promise() -> None:
    work = builders.workload("another", checkpoint=CHECKPOINT)
    fact = lose(work=work)
    assert sum(charge.useful_seconds for charge in fact.charges) == 3 * 15 * 60


def test_a_rent_that_is_not_what_was_asked_for_is_marked_at_the_second_look_and_asked_for_by_itself() -> None:
    row = builders.instance(state=InstanceState.LOADING, tenure=Tenure.ON_DEMAND, gpu_rate=builders.per_hour("0.40"))
    held = builders.lease(state=LeaseState.STARTING, has_run=False)
    first = seen(held, row)
    assert kinds([first]) == []
    assert [first.suspects, first.to_probe] == [{held.lease_id}, {held.instance_id}]
    fact = changed(seen(held, row, memory=first.memory))
    assert (fact.kind, fact.after.has_failed) == ("lease.mismatched", True)
    assert fact.after.end_reason.startswith("mismatch: it is on_demand")
    assert fact.after.gpu_rate == builders.per_hour("0.40")


def test_a_rent_that_is_not_what_was_asked_for_is_metered_as_it_really_is() -> None:
    """From its beginning on: not at the price that was asked for, and as the tenure and the disk that bill."""
    dear: dict[str, Any] = {
        "gpu_rate": builders.per_hour("1.20"),
        "disk_rate": builders.per_hour("0.06"),
        "disk_gb": 300.0,
    }
    row = builders.instance(tenure=Tenure.ON_DEMAND, **dear)
    begun = builders.ago(minutes=20)
    held = builders.lease(
        state=LeaseState.STARTING, has_run=False, bills=Bills.GPU_AND_DISK, accrued_until=begun, state_since=begun
    )
    fact = changed(seen(held, row, memory=seen(held, row).memory))
    assert fact.kind == "lease.mismatched"
    assert sum(charge.gpu.micros for charge in fact.charges) == 400_000
    assert sum(charge.disk.micros for charge in fact.charges) == 20_000
    after = fact.after
    assert (after.tenure, after.disk_gb, after.billing_rate) == (Tenure.ON_DEMAND, 300.0, builders.per_hour("1.26"))
    assert (after.state, after.accrued_until) == (LeaseState.RUNNING, NOW)


def test_one_wrong_answer_about_a_fresh_rent_releases_nothing() -> None:
    held = builders.lease(state=LeaseState.STARTING, has_run=False)
    first = seen(held, builders.instance(state=InstanceState.LOADING, gpu_rate=builders.per_hour("200")))
    second = seen(held, builders.instance(state=InstanceState.LOADING), memory=first.memory)
    assert "lease.mismatched" not in kinds([first, second])
    assert second.memory.suspicions == {}


def test_a_fresh_rent_whose_terms_cannot_be_read_waits_to_be_read_back() -> None:
    held = builders.lease(state=LeaseState.STARTING, has_run=False, bills=Bills.GPU_AND_DISK)
    blind = builders.instance(unread=frozenset({"gpu_rate"}))
    result = seen(held, blind)
    assert (result.facts, result.memory.suspicions) == ((), {})
    dear = builders.instance(gpu_rate=builders.per_hour("9"))
    memory = seen(held, dear, at=1, memory=result.memory).memory
    assert changed(seen(held, dear, at=1, memory=memory)).kind == "lease.mismatched"


@pytest.mark.parametrize(("listed", "counted"), [("0.90", "0.90"), ("500", "0.30")], ids=["dear", "absurd"])
def test_what_was_not_asked_for_counts_as_listed_unless_that_is_absurd(listed: str, counted: str) -> None:
    held = builders.lease(
        state=LeaseState.STARTING, has_run=False, bills=Bills.GPU_AND_DISK, gpu_rate=builders.per_hour("0.30")
    )
    dear = builders.instance(gpu_rate=builders.per_hour(listed))
    fact = changed(seen(held, dear, at=1, memory=seen(held, dear).memory))
    assert fact.kind == "lease.mismatched"
    assert fact.before == held
    assert (fact.after.gpu_rate, fact.after.agreed) == (builders.per_hour(counted),) * 2
    assert fact.after.end_reason.startswith(f"mismatch: it costs ${float(listed):.4f}/h")


def test_a_lease_whose_price_cannot_be_read_is_metered_at_what_it_says() -> None:
    row = builders.instance(gpu_rate=money.FREE, unread=frozenset({"gpu_rate"}))
    fleet = world((RUNS,), row, at=40)
    view = unread_rows.filled(fleet.markets["vast"], fleet.leases, {})
    fact = changed(reconcile.reconcile(msgspec.structs.replace(fleet, markets={"vast": view}), Memory()))
    assert fact.after.gpu_rate == RUNS.gpu_rate
    assert sum(charge.gpu.micros for charge in fact.charges) == RUNS.gpu_rate.over(600).micros


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


def test_an_order_is_no_look_what_is_first_listed_after_its_release_may_have_run_since_the_rent() -> None:
    """A person released it while no listing could be read: nobody saw when it began to bill its GPU."""
    held = builders.lease(
        state=LeaseState.RELEASING, bills=Bills.DISK, accrued_until=builders.ago(hours=1), state_since=NOW - POLL
    )
    assert sum(charge.running_seconds for charge in changed(seen(held, ROW)).charges) == 3600


def test_what_was_given_back_ran_before_the_first_stop_of_a_gap_that_saw_it_stop_twice() -> None:
    """It loaded after our own resume, which no record dates; outbid, given back and outbid again, and nobody looked."""
    held = builders.lease(
        state=LeaseState.STARTING, bills=Bills.DISK, has_run=True, accrued_until=builders.ago(hours=4)
    )
    told = (
        builders.event("outbid", at=builders.ago(hours=3)),
        builders.event("resumed", at=builders.ago(hours=2)),
        builders.event("outbid", at=builders.ago(hours=1)),
    )
    row = builders.instance(state=InstanceState.PAUSED)
    found = all_seen((held,), row, memory=all_seen((held,), row).memory, at=1, events=told).facts
    charges = [charge for fact in found if isinstance(fact, LeaseChanged) for charge in fact.charges]
    assert round(sum(charge.running_seconds for charge in charges) / 3600, 2) == 2
