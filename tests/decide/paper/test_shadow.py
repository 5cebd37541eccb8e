"""A shadow decides on real observations, and its paper cost follows the written rules."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.limits.limits import Limits
from agent.decide.paper import shadow
from agent.decide.paper.shadow import Shadow
from agent.decide.pricing import useful_hour
from agent.decide.strategy import Tuned
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Rent
from agent.domain.work.run_times.running_limit import AtLimit, LimitOf, RunningLimit
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from strategies.ondemand import OnDemand, OnDemandParams
from strategies.patient import Patient, PatientParams
from tests.support import builders, second_price
from tests.support.builders import NOW, per_hour
from tests.support.expiring import held

MINUTE = timedelta(minutes=1)
WORK = builders.workload(checkpoint=Checkpoint(15 * MINUTE, MINUTE, 0.0, CheckpointPlace.REMOTE))
PATIENT = Tuned("patient", Patient(), PatientParams(), "p")
ON_DEMAND = Tuned("ondemand", OnDemand(), OnDemandParams(), "o")
START = useful_hour.loading_hours(WORK.image_gb, 800.0) * 3600
TRAFFIC = round(WORK.image_gb * 5_000)
DISK = 150_000 * 20 / 720


def seen(minutes: float, offers: Sequence[Offer] = (), leases: Sequence[Lease] = (), **changes: Any) -> Fleet:
    """Build a fleet as the live daemon saw it so many minutes after the first look."""
    at = NOW + minutes * MINUTE
    shown = tuple(msgspec.structs.replace(each, seen_at=at) for each in offers)
    view = builders.view(offers=shown, listed_at=at, listed_monotonic=minutes * 60)
    values = {"now": at, "workloads": (WORK,), "markets": {"vast": view}, "leases": tuple(leases)}
    return builders.fleet(monotonic=minutes * 60, **{**values, **changes})


def offer(floor: str = "0.20", ask: str = "0.40") -> Offer:
    return builders.offer(1, floor=per_hour(floor), ask=per_hour(ask))


def lived(looks: Sequence[Fleet], chosen: Tuned = PATIENT, made: Shadow | None = None) -> Shadow:
    """Return a shadow after these looks."""
    made = made or shadow.begun(WORK, chosen, looks[0])
    for look in looks:
        assert shadow.step(made, look, chosen, Limits()) is not None
    return made


def only(made: Shadow) -> Lease:
    (lease,) = made.book.open()
    return lease


def quiet(first: int, last: int) -> list[Fleet]:
    """Return looks, one a minute, without any offer."""
    return [seen(minute) for minute in range(first, last)]


def test_a_rent_pays_its_bid_from_when_it_runs_and_its_image_once() -> None:
    made = lived([seen(0, [offer()]), *quiet(1, 66)])
    lease, tally = only(made), made.tally
    assert (lease.state, lease.gpu_rate) == (LeaseState.RUNNING, per_hour("0.20"))
    paid = (lease.accrued_until - NOW).total_seconds() - START
    assert tally.paid == pytest.approx(paid * 1e6, abs=2)
    assert tally.gpu == pytest.approx(200_000 * paid / 3600, abs=20)
    assert tally.traffic == TRAFFIC
    assert tally.disk == pytest.approx(DISK * (lease.accrued_until - NOW).total_seconds() / 3600, abs=20)
    assert tally.useful == pytest.approx((paid - 60) * 1e6, abs=2)
    assert (tally.rents, tally.starts, tally.interruptions) == (1, 1, 0)


def test_a_floor_above_the_bid_takes_it_and_what_no_checkpoint_kept_is_lost() -> None:
    made = lived([seen(0, [offer()]), *quiet(1, 40), seen(40, [offer("0.35", ask="3.00")])])
    assert only(made).interrupted_by is Cause.OUTBID
    assert made.tally.interruptions == 1
    worked = 40 * 60 - START - 60
    assert made.tally.useful == pytest.approx(worked // 900 * 900 * 1e6, abs=2)
    assert made.tally.lost == pytest.approx(worked % 900 * 1e6, abs=2)
    assert made.tally.gpu == pytest.approx(200_000 * (40 * 60 - START) / 3600, abs=20)


def test_a_floor_at_the_bid_or_none_told_takes_nothing() -> None:
    made = lived([seen(0, [offer()]), *quiet(1, 10), seen(10, [offer("0.20")]), *quiet(11, 30)])
    assert (only(made).state, made.tally.interruptions) == (LeaseState.RUNNING, 0)


def test_what_was_lost_comes_back_when_a_floor_is_told_that_the_bid_meets() -> None:
    lost = [seen(0, [offer()]), *quiet(1, 40), seen(40, [offer("0.23", ask="3.00")])]
    waits = Tuned("patient", Patient(), PatientParams(may_raise=False, may_move=False), "w")
    made = lived([*lost, *quiet(41, 50), seen(50, [offer("0.20", ask="3.00")]), *quiet(51, 55)], waits)
    assert only(made).state is LeaseState.RUNNING
    assert (made.tally.interruptions, made.tally.starts) == (1, 2)


def test_a_bid_that_is_raised_over_the_rival_wins_at_once() -> None:
    made = lived([seen(0, [offer()]), *quiet(1, 10), seen(10, [offer("0.22")]), *quiet(11, 15)])
    assert (only(made).state, made.tally.interruptions, made.tally.starts) == (LeaseState.RUNNING, 1, 2)
    assert only(made).gpu_rate > per_hour("0.22")


def test_on_demand_pays_its_ask_and_no_floor_takes_it() -> None:
    made = lived([seen(0, [offer()]), *quiet(1, 30), seen(30, [offer("5.00")]), *quiet(31, 40)], ON_DEMAND)
    lease = only(made)
    assert (lease.gpu_rate, lease.state, made.tally.interruptions) == (per_hour("0.40"), LeaseState.RUNNING, 0)


def test_it_begins_as_the_live_position_stands_and_counts_from_then_on() -> None:
    made = shadow.begun(WORK, PATIENT, seen(0, leases=[builders.lease(1)]))
    lived([seen(minute, leases=[builders.lease(1)]) for minute in range(61)], PATIENT, made)
    lease = only(made)
    assert lease.host_id == "h1"
    assert lease.instance_id.startswith("paper-")
    hours = (lease.accrued_until - NOW).total_seconds() / 3600
    assert made.tally.gpu == pytest.approx(220_000 * hours, abs=20)
    assert made.tally.rents == made.tally.traffic == 0


def test_its_running_time_is_that_of_its_own_leases() -> None:
    """An hour that the live fleet ran counted for the shadow too, which then stood still."""
    limit = RunningLimit(2 * 60 * MINUTE, LimitOf.WORKLOAD, AtLimit.PAUSE)
    work, ran = replace(WORK, max_running=(limit,)), {"train": 30 * 60 * 10**6}
    made = shadow.begun(work, PATIENT, seen(0, leases=[builders.lease(1)], workloads=(work,), ran_micros=ran))
    live = [seen(minute, workloads=(work,), ran_micros={"train": 2 * 3600 * 10**6}) for minute in range(60)]
    lived(live, PATIENT, made)
    assert only(made).state is LeaseState.RUNNING
    ended = msgspec.structs.replace(only(made), state=LeaseState.ENDED, ended_at=NOW)
    made.book.put(ended)
    made.book.put(ended)
    assert made.book.ran_micros["train"] == ran["train"] + ended.ran_micros


def test_on_a_host_of_ours_the_floor_is_our_own_bid_and_the_loss_is_ours() -> None:
    held = builders.lease(1)
    made = shadow.begun(WORK, PATIENT, seen(0, leases=[held]))
    made.book.leases = {
        key: msgspec.structs.replace(lease, gpu_rate=per_hour("0.30")) for key, lease in made.book.leases.items()
    }
    made.paper.held = {key: replace(each, rate=per_hour("0.30")) for key, each in made.paper.held.items()}
    lived([seen(1, [offer("0.35")], [held])], PATIENT, made)
    assert only(made).state is LeaseState.RUNNING, "the floor told there is what we bid"
    lost = msgspec.structs.replace(
        held, state=LeaseState.PAUSED, bills=Bills.DISK, run_since=None, interrupted_by=Cause.OUTBID,
        rival_floor=per_hour("0.25"),
    )  # fmt: skip
    lived([seen(2, leases=[lost])], PATIENT, made)
    assert only(made).state is LeaseState.RUNNING, "the rival bid less than the paper lease"
    lived([seen(3, leases=[msgspec.structs.replace(lost, rival_floor=per_hour("0.31"))])], PATIENT, made)
    assert made.tally.interruptions == 1


def test_no_offer_on_a_host_of_ours_is_rented_on_paper() -> None:
    held = builders.lease(1)
    made = Shadow("train", "patient", NOW)
    lived([seen(0, [offer()], [held])], PATIENT, made)
    assert not made.paper.held


def test_a_persons_word_holds_for_a_shadow_and_a_budget_does_not() -> None:
    assert not lived([seen(0, [offer()], holds=(held("drain", "workload:train"),))]).paper.held
    poor = builders.view(offers=(offer(),), listed_at=NOW, credit=builders.usd(0), no_spend_because="spend = false")
    made = Shadow("train", "patient", NOW)
    done = shadow.step(made, seen(0, markets={"vast": poor}), PATIENT, Limits(per_day=builders.usd(0)))
    assert done is not None
    assert any(isinstance(each, Rent) for each in done.decisions)
    dear = Limits(per_instance_hour=per_hour("0.01"))
    done = shadow.step(Shadow("train", "patient", NOW), seen(0, [offer()]), PATIENT, dear)
    assert done is not None
    assert not any(isinstance(each, Rent) for each in done.decisions)


def test_a_market_that_is_not_seen_changes_nothing() -> None:
    made = lived([seen(0, [offer()]), *quiet(1, 20)])
    before = only(made)
    stale = builders.view(offers=(offer("0.90"),), listed_at=NOW, is_fresh=False)
    lived([seen(25, markets={"vast": stale})], PATIENT, made)
    assert only(made) == before


def test_the_same_decision_is_news_once() -> None:
    made = Shadow("train", "patient", NOW)
    steps = [shadow.step(made, look, PATIENT, Limits()) for look in [seen(0, [offer()]), *quiet(1, 30)]]
    kinds = [type(each).__name__ for one in steps if one is not None for each in one.news]
    assert kinds.count("Rent") == 1
    assert len(kinds) < 8


def test_what_is_kept_goes_on_as_if_nothing_had_been_between() -> None:
    first, rest = [seen(0, [offer()]), *quiet(1, 20)], [seen(20, [offer("0.35")]), *quiet(21, 40)]
    whole = lived([*first, *rest])
    kept = shadow.unpacked(shadow.packed(lived(first)))
    assert kept is not None
    assert shadow.packed(lived(rest, PATIENT, kept)) == shadow.packed(whole)
    assert shadow.unpacked(b"another release") is None


def test_a_workload_that_is_gone_ends_it() -> None:
    made = lived([seen(0, [offer()])])
    assert shadow.step(made, seen(1, workloads=()), PATIENT, Limits()) is None


def auctioned(minutes: float, floor: str) -> Fleet:
    pool = second_price.pool(floor=per_hour(floor), seen_at=NOW + minutes * MINUTE)
    view = second_price.view(
        offers=(pool,), listed_at=NOW + minutes * MINUTE, listed_monotonic=minutes * 60, listings=10 + int(minutes)
    )
    return seen(minutes, markets={second_price.NAME: view})


def test_a_bid_below_the_price_to_win_waits_and_starts_when_that_falls() -> None:
    made = lived([auctioned(0, "1.50"), auctioned(0.25, "1.50"), auctioned(1, "1.40")])
    assert only(made).is_open_bid
    assert (only(made).has_run, made.tally.spent, made.tally.interruptions) == (False, 0, 0)
    lived([auctioned(2, "0.30"), auctioned(2.25, "0.30")], made=made)
    assert only(made).state is LeaseState.STARTING
    lived([auctioned(20, "0.30"), auctioned(20.25, "0.30")], made=made)
    assert (only(made).state, only(made).gpu_rate) == (LeaseState.RUNNING, per_hour("0.30"))


def test_under_a_limit_it_pays_the_price_that_wins_and_is_lost_to_one_above_the_limit() -> None:
    made = lived([auctioned(0, "0.20"), auctioned(10, "0.20")])
    assert only(made).state is LeaseState.RUNNING
    assert only(made).gpu_rate == per_hour("0.20")
    limit = only(made).bid_limit
    assert limit is not None
    assert 0.9 < limit.dollars <= 1.0
    lived([auctioned(20, "0.50"), auctioned(20.25, "0.50")], made=made)
    assert (only(made).state, only(made).gpu_rate) == (LeaseState.RUNNING, per_hour("0.50"))
    lived([auctioned(30, "1.50"), auctioned(30.25, "1.50"), auctioned(30.5, "1.50")], made=made)
    assert only(made).state is LeaseState.PAUSED
