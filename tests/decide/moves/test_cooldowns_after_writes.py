"""A start that the market confirmed and that shows no effect: waited for, then given up, never sent cycle by cycle."""

import dataclasses
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import plan, slots
from agent.decide.limits.limits import Limits
from agent.decide.moves import cooldowns_after_writes
from agent.decide.pricing import cooldowns
from agent.decide.strategy import SlotView
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Tally
from agent.domain.work.decision import Decision, Hold, Pause, Reason, Rebid, Release, Resume
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support import builders

NOW = builders.NOW
TUNED = {
    "ondemand": builders.tuned(OnDemand(), OnDemandParams(), "ondemand"),
    "patient": builders.tuned(Patient(), PatientParams()),
}
WHY = Reason("resume", "start it again on its host")
STOPPED = builders.lease(state=LeaseState.PAUSED, interrupted_by=Cause.DISPLACED)
ON_DISK = builders.workload(strategy="ondemand", checkpoint=Checkpoint(place=CheckpointPlace.DISK))


def started(minutes: float, held: Lease = STOPPED) -> Tally:
    """Return the mark of a start that was confirmed so many minutes ago."""
    return cooldowns_after_writes.after_start(held.lease_id, NOW - timedelta(minutes=minutes))


def planned(held: Lease, *marks: Tally, work: Workload | None = None, **changes: Any) -> Decision:
    of = work or builders.workload(strategy="ondemand")
    fleet = builders.fleet(workloads=(of,), leases=(held,), tallies=marks, **changes)
    (decision,) = plan.plan(fleet, TUNED, Limits()).decisions
    return decision


def test_what_stopped_is_started_once_and_then_waited_for() -> None:
    assert isinstance(planned(STOPPED), Resume)
    made = planned(STOPPED, started(0))
    assert isinstance(made, Hold)
    assert made.reason.code == "start_waits"
    other = started(0, builders.lease(2))
    assert isinstance(planned(STOPPED, other), Resume), "the start of another lease says nothing of this one"


REBID = Rebid(builders.lease(), builders.per_hour("0.3"), WHY)
START_AT_A_BID = Rebid(STOPPED, builders.per_hour("0.3"), WHY)


@pytest.mark.parametrize(
    ("asked", "refusal", "is_full"),
    [
        (Resume(STOPPED, WHY), "host_full", True),
        (Resume(STOPPED, WHY), "invalid_args", False),
        (Resume(STOPPED, WHY), "missing_billing", False),
        (START_AT_A_BID, "bid_too_low", True),
        (REBID, "bid_too_low", False),
        (REBID, "invalid_args", False),
    ],
    ids=str,
)
def test_a_start_that_its_host_refused_is_not_asked_for_at_every_poll(
    asked: Resume | Rebid, refusal: str, *, is_full: bool
) -> None:
    """What concerns the account is no reason to leave a host, and a bid that is no bid says nothing of the host."""
    made = cooldowns_after_writes.after_refusal(asked, refusal, (), NOW)
    full = [rest for rest in made if isinstance(rest, Cooldown)]
    assert [(rest.place, rest.is_over(NOW + cooldowns.HOST_FULL)) for rest in full] == [
        (("full", "vast-1"), True)
    ] * is_full
    tallies = [rest for rest in made if isinstance(rest, Tally)]
    assert [tally.of for tally in tallies] == ["vast-1"] * (not is_full)
    work, wait = builders.workload(strategy="ondemand"), cooldowns.HOST_FULL
    at_once = builders.fleet(leases=(asked.lease,), tallies=tallies, now=NOW + wait - timedelta(seconds=1))
    assert isinstance(cooldowns_after_writes.instead(asked, work, at_once), Hold) is bool(tallies)
    later = builders.fleet(leases=(asked.lease,), tallies=tallies, now=NOW + wait)
    assert cooldowns_after_writes.instead(asked, work, later) is asked


def refused_often(asked: Resume | Rebid, refusal: str, hours: float = 1.0) -> list[float]:
    """Return after how many minutes an order is asked for that is always refused; a poll is half a minute."""
    at, found = NOW, []
    tallies: tuple[Tally, ...] = ()
    while at < NOW + timedelta(hours=hours):
        fleet = builders.fleet(leases=(asked.lease,), tallies=tallies, now=at)
        if cooldowns_after_writes.instead(asked, builders.workload(), fleet) is asked:
            found.append((at - NOW) / timedelta(minutes=1))
            made = cooldowns_after_writes.after_refusal(asked, refusal, tallies, at)
            tallies = tuple(rest for rest in made if isinstance(rest, Tally))
        at += timedelta(seconds=30)
    return found


@pytest.mark.parametrize(
    ("refusal", "minutes"),
    [
        ("missing_billing", [0, 15, 30, 45]),
        ("insufficient_credit", [0, 1, 3, 7, 15, 30, 45]),
        ("out_of_funds", [0, 1, 3, 7, 15, 30, 45]),
        ("invalid_price", [0, 15, 30, 45]),
        ("wrong_state", [0, 1, 3, 7, 15, 30, 45]),
        ("not_found", [0, 1, 3, 7, 15, 30, 45]),
    ],
)
def test_an_order_that_is_refused_again_and_again_rests(refusal: str, minutes: list[float]) -> None:
    """It was asked for at every poll. If the listing contradicts the refusal, the cooldown begins short and grows."""
    assert refused_often(Resume(STOPPED, WHY), refusal) == minutes


@pytest.mark.parametrize("refusal", ["missing_billing", "wrong_state", "not_found"])
@pytest.mark.parametrize("order", [Release, Pause])
def test_what_ends_or_pauses_a_lease_never_rests(order: type[Release | Pause], refusal: str) -> None:
    """A kill or a cap may demand it (rule 20)."""
    running = builders.lease()
    tallies: tuple[Tally, ...] = ()
    for _ in range(5):
        made = cooldowns_after_writes.after_refusal(order(running, WHY), refusal, tallies, NOW)
        tallies = tuple(rest for rest in made if isinstance(rest, Tally))
    fleet = builders.fleet(leases=(running,), tallies=tallies)
    asked = order(running, WHY)
    assert cooldowns_after_writes.instead(asked, builders.workload(), fleet) is asked


@pytest.mark.parametrize(
    ("refusal", "times", "code"),
    [
        ("invalid_args", 1, "cancel_start"),
        ("missing_billing", 3, "order_refused"),
        ("insufficient_credit", 3, "order_refused"),
        ("wrong_state", 2, "order_refused"),
        ("wrong_state", 3, "cancel_start"),
    ],
)
@pytest.mark.parametrize("strategy", ["patient", "ondemand"])
def test_another_host_is_tried_at_once_after_a_start_that_the_market_does_not_take(
    strategy: str, refusal: str, times: int, code: str
) -> None:
    """The slot was idle for a quarter of an hour.

    No other host avoids a refusal for the account's lack of something.
    """
    tenure = Tenure.ON_DEMAND if strategy == "ondemand" else Tenure.INTERRUPTIBLE
    held = builders.lease(state=LeaseState.PAUSED, interrupted_by=Cause.OUT_OF_CREDIT, tenure=tenure)
    tallies: tuple[Tally, ...] = ()
    for _ in range(times):
        made = cooldowns_after_writes.after_refusal(Resume(held, WHY), refusal, tallies, NOW)
        assert not [rest for rest in made if isinstance(rest, Cooldown)], "nothing is known of its host"
        tallies = tuple(rest for rest in made if isinstance(rest, Tally))
    offers = (builders.offer(offer_id="a9", host_id="h9", owner_id="o9"),)
    markets = {"vast": builders.view(offers=offers)}
    decided = planned(held, *tallies, work=builders.workload(strategy=strategy), markets=markets)
    assert decided.reason.code == code
    kept = planned(held, *tallies, work=dataclasses.replace(ON_DISK, strategy=strategy), markets=markets)
    assert kept.reason.code == "order_refused", "the disk may hold the only checkpoint"


@pytest.mark.parametrize(
    ("refusals", "count", "code"),
    [
        (("missing_billing", "wrong_state", "invalid_args"), 1, "order_refused"),
        (("wrong_state", "wrong_state", "invalid_args"), 1, "order_refused"),
        (("invalid_args", "invalid_args", "missing_billing"), 1, "order_refused"),
        (("invalid_args", "refused", "invalid_args"), 3, "host_full"),
        (("wrong_state", "not_found", "wrong_state"), 3, "order_refused"),
    ],
    ids=str,
)
def test_refusals_are_counted_together_that_have_the_same_kind_of_cause(
    refusals: tuple[str, ...], count: int, code: str
) -> None:
    """A disk was released after a single refusal of the request: the count was that of all before it."""
    tallies: tuple[Tally, ...] = ()
    for refusal in refusals:
        made = cooldowns_after_writes.after_refusal(Resume(STOPPED, WHY), refusal, tallies, NOW)
        tallies = tuple(rest for rest in made if isinstance(rest, Tally))
    (tally,) = tallies
    assert (tally.count, tally.ground) == (count, refusals[-1])
    decided = planned(STOPPED, *tallies)
    assert decided.reason.code == code
    assert isinstance(decided, Release if code == "host_full" else Hold)


@pytest.mark.parametrize("strategy", ["patient", "ondemand"])
@pytest.mark.parametrize("state", [LeaseState.PAUSED, LeaseState.OFFLINE])
def test_a_refusal_from_before_the_lease_ran_again_steers_nothing(state: LeaseState, strategy: str) -> None:
    """Its host was silent for a minute, and the slot moved at once for a start that was refused before its last run."""
    at, tenure = builders.ago(minutes=12), Tenure.ON_DEMAND if strategy == "ondemand" else Tenure.INTERRUPTIBLE
    before = builders.lease(state=LeaseState.PAUSED, interrupted_by=Cause.OUT_OF_CREDIT, tenure=tenure)
    made = cooldowns_after_writes.after_refusal(Resume(before, WHY), "invalid_args", (), at)
    tallies = tuple(rest for rest in made if isinstance(rest, Tally))
    offers = (builders.offer(offer_id="a9", host_id="h9", owner_id="o9"),)
    markets, work = {"vast": builders.view(offers=offers)}, builders.workload(strategy=strategy)
    moved = planned(before, *tallies, work=work, markets=markets)
    assert moved.reason.code in {"move", "cancel_start"}
    cause = Cause.HOST_OFFLINE if state is LeaseState.OFFLINE else Cause.OUT_OF_CREDIT
    since = builders.ago(minutes=1)
    again = msgspec.structs.replace(before, state=state, state_since=since, interrupted_by=cause, has_run=True)
    decided = planned(again, *tallies, work=work, markets=markets)
    if state is LeaseState.PAUSED:
        assert isinstance(decided, Resume), "nobody has refused this start"
    else:
        assert decided == planned(again, work=work, markets=markets)
        assert isinstance(decided, Hold) or strategy == "patient"


LOWER = Rebid(builders.lease(), builders.per_hour("0.1"), WHY)


@pytest.mark.parametrize(("refused", "free"), [(LOWER, REBID), (REBID, LOWER)], ids=["lower", "raise"])
def test_a_refused_lowering_forbids_no_raise_and_a_refused_raise_no_lowering(refused: Rebid, free: Rebid) -> None:
    made = cooldowns_after_writes.after_refusal(refused, "invalid_args", (), NOW)
    tallies = tuple(rest for rest in made if isinstance(rest, Tally))
    fleet = builders.fleet(leases=(refused.lease,), tallies=tallies)
    work = builders.workload()
    assert cooldowns_after_writes.instead(free, work, fleet) is free
    held = cooldowns_after_writes.instead(refused, work, fleet)
    assert isinstance(held, Hold)
    assert held.reason.code == "order_refused", "no host is full"
    (other,) = (rest for rest in cooldowns_after_writes.after_refusal(free, "invalid_args", tallies, NOW))
    assert isinstance(other, Tally)
    assert other.count == 1, "each is counted by itself"


@pytest.mark.parametrize(("minutes", "rests"), [(14, True), (15, False)])
def test_a_strategy_sees_which_orders_rest_after_a_refusal(minutes: int, *, rests: bool) -> None:
    at = builders.ago(minutes=minutes)
    made = cooldowns_after_writes.after_refusal(Rebid(STOPPED, REBID.bid, WHY), "invalid_args", (), at)
    fleet = builders.fleet(leases=(STOPPED,), tallies=tuple(rest for rest in made if isinstance(rest, Tally)))
    seen = slots.view_or_proposal(fleet, STOPPED.slot, cooldowns.in_force(fleet))
    assert isinstance(seen, SlotView)
    assert seen.down is not None
    assert seen.down.refused == ({cooldowns.RAISE} if rests else frozenset())


@pytest.mark.parametrize("cause", [Cause.OUT_OF_CREDIT, Cause.CONTAINER_EXIT, Cause.EXTERNAL_STOP], ids=str)
def test_recovery_repeats_no_start_either(cause: Cause) -> None:
    held = builders.lease(state=LeaseState.PAUSED, interrupted_by=cause)
    work = builders.workload(strategy="patient")
    assert isinstance(planned(held, work=work), Resume)
    assert isinstance(planned(held, started(1, held), work=work), Hold)


def test_a_start_without_effect_is_given_up() -> None:
    minutes = cooldowns.START_PATIENCE / timedelta(minutes=1)
    assert isinstance(planned(STOPPED, started(minutes - 1)), Hold)
    made = planned(STOPPED, started(minutes))
    assert isinstance(made, Release)
    assert made.reason.code == "host_full"


def test_a_disk_that_may_hold_the_only_checkpoint_is_kept_and_tried_again() -> None:
    made = planned(STOPPED, started(30), work=ON_DISK)
    assert isinstance(made, Hold)
    assert made.reason.code == "host_full"
    assert isinstance(planned(STOPPED, started(60), work=ON_DISK), Resume)


def test_our_own_pause_cancels_the_start_that_waited() -> None:
    held = builders.lease(state=LeaseState.PAUSED, paused_by_us=True)
    assert isinstance(planned(held, started(30, held)), Resume)


def test_nobody_sends_a_start_at_the_pace_of_busy_cycles() -> None:
    """Hours in which every start is queued, looked at every two seconds of a busy cycle or at each poll."""
    starts = [at for at, decision in _afternoon(hours=6) if isinstance(decision, Resume)]
    assert len(starts) == 6


def _afternoon(hours: int) -> Iterator[tuple[datetime, Decision]]:
    at = NOW
    marks: tuple[Tally, ...] = ()
    while at < NOW + timedelta(hours=hours):
        made = planned(STOPPED, *marks, work=ON_DISK, now=at)
        yield at, made
        if isinstance(made, Resume):
            marks = (cooldowns_after_writes.after_start(made.lease.lease_id, at),)
        at += timedelta(seconds=2 if isinstance(made, Resume) else 30)


@pytest.mark.parametrize("code", ["unhealthy", "unhealthy_host", "stalled", "stalled_host"])
def test_a_pool_has_other_machines_than_the_one_that_was_given_up_without_a_restart(code: str) -> None:
    of_pool = builders.lease(market="dstack", host_id="pool/aws/us-east-1")
    assert of_pool.host.is_pool
    rest = after(Release(of_pool, Reason(code, "")))
    assert rest.key == str(of_pool.host)
    assert rest.until == NOW + cooldowns.POOL_LOST
    for again in (builders.lease(), msgspec.structs.replace(of_pool, restarts=2)):
        until = after(Release(again, Reason(code, ""))).until
        assert until is not None
        assert until >= NOW + cooldowns.HOST_LEFT


def after(release: Release) -> Cooldown:
    (rest,) = cooldowns_after_writes.after_release(release, NOW)
    assert isinstance(rest, Cooldown)
    return rest
