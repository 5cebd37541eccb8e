"""The state of a lease, and its cost, after the market has confirmed a write on it."""

from datetime import timedelta
from typing import Any

import pytest

from agent.decide.accounting.meter import Charge
from agent.decide.reconcile import outcomes, workload_end
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Hold, Pause, Reason, Rebid, Release, Rent, Resume
from agent.domain.work.ready_sign import Readiness, ReadySign
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders

NOW = builders.NOW
LATER = NOW + timedelta(minutes=30)
WHY = Reason("move", "there is a better one")
KEEPS = Checkpoint(timedelta(minutes=20), timedelta(minutes=1), place=CheckpointPlace.REMOTE)
PAUSED: dict[str, Any] = {"state": LeaseState.PAUSED, "state_since": builders.ago(minutes=40)}


def spent(charges: tuple[Charge, ...]) -> tuple[int, int]:
    return sum(one.gpu.micros for one in charges), sum(one.disk.micros for one in charges)


def useful(charges: tuple[Charge, ...]) -> tuple[float, int]:
    """Return the useful seconds, and the useful microseconds of the phases."""
    return (
        sum(one.useful_seconds for one in charges),
        sum(one.phases.useful for one in charges if one.phases is not None),
    )


def test_a_pause_is_metered_up_to_its_instant_and_bills_the_disk_from_there() -> None:
    held = builders.lease(idle_since=NOW, ready_since=NOW)
    made = outcomes.written(Pause(held, WHY), LATER, KEEPS)
    assert made.kind == "lease.paused"
    assert spent(made.charges) == (110_000, 2_000)
    after = made.lease
    assert (after.state, after.state_since, after.accrued_until) == (LeaseState.PAUSED, LATER, LATER)
    assert (after.bills, after.billing_rate) == (Bills.DISK, builders.per_hour("0.004"))
    assert (after.run_since, after.ready_since, after.idle_since) == (None, None, None)
    assert (after.paused_by_us, after.end_reason) == (True, "")


def test_what_we_stop_ourselves_is_useful_to_its_end() -> None:
    """An hour that was counted and half an hour more, less the restore; nothing of it is lost."""
    made = outcomes.written(Pause(builders.lease(), WHY), LATER, KEEPS)
    assert useful(made.charges) == (89 * 60, 30 * 60 * 1_000_000)
    assert all(one.phases is None or not one.phases.spoiled for one in made.charges)
    told = Readiness(ReadySign.PORT, port=8000)
    late = outcomes.written(Release(builders.lease(ready_since=builders.ago(minutes=10)), WHY), LATER, KEEPS, told)
    assert useful(late.charges)[0] == 40 * 60


def test_what_ends_is_metered_by_the_turns_since_it_was_metered_last() -> None:
    """Outbid ten minutes ago and given back five minutes ago, unseen: its stretch of work ended with the first."""
    turns = ((LATER - timedelta(minutes=10), Bills.DISK), (LATER - timedelta(minutes=5), Bills.GPU_AND_DISK))
    made = outcomes.written(Release(builders.lease(), WHY), LATER, KEEPS, ends=turns)
    assert sum(one.running_seconds for one in made.charges) == 25 * 60
    assert useful(made.charges) == (79 * 60, 20 * 60 * 1_000_000)


def test_a_release_bills_nothing_any_more_and_says_why() -> None:
    made = outcomes.written(Release(builders.lease(), WHY), LATER, KEEPS)
    assert made.kind == "lease.released_by_us"
    assert spent(made.charges) == (110_000, 2_000)
    after = made.lease
    assert (after.state, after.state_since, after.bills) == (LeaseState.RELEASING, LATER, Bills.NOTHING)
    assert (after.end_reason, after.paused_by_us, after.run_since) == ("move", False, None)


def test_a_release_keeps_the_first_reason_and_whose_pause_it_was() -> None:
    held = builders.lease(**PAUSED, end_reason="mismatch: dearer", paused_by_us=True)
    after = outcomes.written(Release(held, WHY), LATER, KEEPS).lease
    assert (after.end_reason, after.paused_by_us, after.state_since) == ("mismatch: dearer", True, LATER)


def test_a_release_that_is_ordered_again_keeps_the_time_of_the_first_order() -> None:
    """The market confirmed the first one and lists the instance still: the alert measures from there."""
    held = builders.lease(state=LeaseState.RELEASING, state_since=builders.ago(minutes=40))
    for decision in (Release(held, WHY), Pause(held, WHY)):
        after = outcomes.written(decision, LATER, KEEPS).lease
        assert (after.state, after.state_since) == (LeaseState.RELEASING, held.state_since)


def test_what_is_down_already_is_paused_without_beginning_its_wait_anew() -> None:
    held = builders.lease(**PAUSED)
    made = outcomes.written(Pause(held, WHY), LATER, KEEPS)
    assert made.lease.state_since == held.state_since
    assert spent(made.charges) == (0, 2_000)
    assert useful(made.charges) == (0, 0)


@pytest.mark.parametrize("decision", [Pause, Release, Resume, lambda held, why: Rebid(held, held.gpu_rate, why)])
def test_what_is_metered_beyond_the_instant_is_neither_charged_again_nor_set_back(decision: Any) -> None:
    made = outcomes.written(decision(builders.lease(), WHY), NOW - timedelta(minutes=5), KEEPS)
    assert made.lease.accrued_until == NOW
    assert spent(made.charges) == (0, 0)


def test_an_accepted_start_ends_the_interruption() -> None:
    held = builders.lease(**PAUSED, paused_by_us=True, interrupted_by=Cause.OUTBID)
    made = outcomes.written(Resume(held, WHY), LATER, KEEPS)
    assert made.kind == "lease.starting"
    after = made.lease
    assert (after.state, after.state_since, after.accrued_until) == (LeaseState.STARTING, LATER, LATER)
    assert (after.paused_by_us, after.interrupted_by, after.bills) == (False, None, Bills.DISK)
    assert spent(made.charges) == (0, 2_000)


def test_what_we_stop_and_start_again_loads_anew() -> None:
    """It loaded for an hour, less the silence of its host, before we paused it: the next start has all its time."""
    held = builders.lease(state=LeaseState.STARTING, loading_since=builders.ago(minutes=55))
    paused = outcomes.written(Pause(held, WHY), LATER, KEEPS).lease
    assert paused.loads_since is None
    later = LATER + timedelta(minutes=5)
    assert outcomes.written(Resume(paused, WHY), later, KEEPS).lease.loads_since == later
    assert outcomes.written(Release(held, WHY), LATER, KEEPS).lease.loads_since is None
    silent = builders.lease(state=LeaseState.OFFLINE, loading_since=builders.ago(minutes=55))
    assert outcomes.written(Resume(silent, WHY), LATER, KEEPS).lease.loads_since == LATER


def test_a_queued_start_waits_on_in_the_same_interruption() -> None:
    held = builders.lease(**PAUSED, paused_by_us=True, interrupted_by=Cause.OUTBID)
    made = outcomes.written(Resume(held, WHY), LATER, KEEPS, is_accepted=False)
    assert made.kind == "lease.queued"
    after = made.lease
    assert (after.state, after.state_since, after.accrued_until) == (LeaseState.PAUSED, held.state_since, LATER)
    assert (after.paused_by_us, after.interrupted_by) == (False, Cause.OUTBID)
    assert spent(made.charges) == (0, 2_000)


def test_a_rebid_costs_the_old_price_up_to_its_instant() -> None:
    bids = tuple(builders.per_hour(f"0.1{number}") for number in range(6))
    made = outcomes.written(Rebid(builders.lease(recent_bids=bids), builders.per_hour("0.30"), WHY), LATER, KEEPS)
    assert made.kind == "lease.rebid"
    assert spent(made.charges) == (110_000, 2_000)
    after = made.lease
    assert (after.gpu_rate, after.bid_since, after.accrued_until) == (builders.per_hour("0.30"), LATER, LATER)
    assert after.recent_bids == (builders.per_hour("0.22"), *bids[:5])


def rented(**changes: Any) -> tuple[Lease, outcomes.Outcome]:
    decision = Rent(
        builders.slot(),
        builders.offer(),
        Tenure.INTERRUPTIBLE,
        builders.per_hour("0.22"),
        builders.per_hour("0.24"),
        WHY,
    )
    made = outcomes.rented(builders.intent(disk_gb=20.0), decision, "77", NOW, **changes)
    return made.lease, made


def test_a_fresh_rent_bills_its_disk_alone_and_sets_aside_the_whole_rate() -> None:
    lease, made = rented()
    assert (made.kind, made.charges) == ("lease.opened", ())
    assert (lease.lease_id, lease.instance_id, lease.state, lease.end_reason) == (
        "vast-77", "77", LeaseState.STARTING, "",
    )  # fmt: skip
    assert lease.gpu_rate + lease.disk_rate == builders.per_hour("0.24")
    assert lease.disk_rate == builders.offer().disk_rate(20.0)
    assert (lease.bills, lease.disk_gb, lease.tenure) == (Bills.DISK, 20.0, Tenure.INTERRUPTIBLE)
    sent_at = builders.intent().sent_at
    assert {lease.opened_at, lease.state_since, lease.accrued_until, lease.bid_since} == {sent_at}


def test_what_a_refused_bid_left_behind_is_to_be_released() -> None:
    lease, made = rented(is_leftover=True)
    assert (made.kind, lease.state, lease.end_reason) == ("lease.leftover", LeaseState.RELEASING, "bid_too_low")
    assert lease.bills is Bills.DISK


def test_a_hold_writes_no_lease() -> None:
    with pytest.raises(TypeError, match="no lease is written by Hold"):
        outcomes.written(Hold(builders.slot(), WHY), NOW, KEEPS)


@pytest.mark.parametrize(("code", "why"), [("done", "done"), ("move", workload_end.FAST_EXIT)])
def test_a_task_that_was_done_soon_is_released_as_done(code: str, why: str) -> None:
    quick = builders.lease(**PAUSED, end_reason=workload_end.FAST_EXIT)
    assert outcomes.written(Release(quick, Reason(code, "it is over")), LATER, KEEPS).lease.end_reason == why
    assert outcomes.leaving(quick, LATER, code).end_reason == why
