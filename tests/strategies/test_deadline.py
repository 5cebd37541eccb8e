"""deadline: slack is spent on interruptible capacity, and on-demand is rented while it is still in time."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.deadline import hazards
from agent.decide.limits import limits
from agent.domain import card_benchmarks
from agent.domain.fleet import Fleet
from agent.domain.market import gpu
from agent.domain.market.capacity import Capacity
from agent.domain.market.interruption import Cause
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Deadline as By
from agent.domain.work.deadline import Progress, Speed, Start
from agent.domain.work.decision import Decision, Hold, Pause, Release, Rent
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from strategies.deadline import Deadline, DeadlineParams
from tests.support import builders
from tests.support.expiring import tally

NOW = builders.NOW
AGO = builders.ago
HOURS = 10.0
OVERHEAD = (10 + 20 + 1) / 60
"""Reserve, start and restore of the built workload, in hours, while nothing is done yet."""


def seen(
    offers: Sequence[Offer] = (),
    leases: Sequence[Lease] = (),
    *,
    left: float = 100.0,
    done: float = 0.0,
    **changes: Any,
) -> Fleet:
    """Build a fleet of one workload with ten hours of work and so many hours left."""
    work = builders.workload(
        strategy="deadline",
        deadline=By(HOURS, NOW + timedelta(hours=left), reference_gpu=changes.pop("reference", None)),
        **changes.pop("work", {}),
    )
    told = Progress("train", done, NOW, AGO(hours=changes.pop("asked_hours", 0)))
    return builders.fleet(
        workloads=(work,),
        markets=changes.pop("markets", {"vast": builders.view(offers=tuple(offers))}),
        leases=tuple(leases),
        progress={"train": told},
        **changes,
    )


def decided(fleet: Fleet, **params: Any) -> Decision:
    tuned = builders.tuned(Deadline(), DeadlineParams(**params), "deadline")
    (made,) = plan.plan(fleet, {"deadline": tuned}, limits.Limits()).decisions
    return made


def rented(fleet: Fleet, **params: Any) -> Rent:
    made = decided(fleet, **params)
    assert isinstance(made, Rent), made
    return made


def lost(**changes: Any) -> Lease:
    values = {"state": LeaseState.PAUSED, "interrupted_by": Cause.OUTBID, "state_since": AGO(minutes=30)}
    return builders.lease(9, **{**values, **changes})


def on_demand(**changes: Any) -> Lease:
    values = {"tenure": Tenure.ON_DEMAND, "gpu_rate": builders.per_hour("0.80"), "state_since": AGO(hours=3)}
    return builders.lease(9, **{**values, **changes})


RTX_3090 = gpu.model("RTX 3090")
ASK_ONLY = builders.offer(2, floor=None)


def test_with_slack_an_empty_slot_bids() -> None:
    made = rented(seen([builders.offer()]))
    assert made.tenure is Tenure.INTERRUPTIBLE
    assert "slack 89.48 h: on-demand at the latest from 2026-11-24 05:29 UTC" in made.reason.sentence
    terms = {term.name: term.figure for term in made.reason.options[-1].terms}
    assert terms["slack"] == pytest.approx(100 - HOURS - OVERHEAD)


@pytest.mark.parametrize(("spare", "tenure"), [(-0.01, Tenure.ON_DEMAND), (1.0, Tenure.INTERRUPTIBLE)])
def test_the_last_call_is_before_start_restart_and_reserve(spare: float, tenure: Tenure) -> None:
    made = rented(seen([builders.offer()], left=HOURS + OVERHEAD + spare))
    assert made.tenure is tenure


def test_an_attempt_that_could_not_fail_in_time_is_not_begun() -> None:
    made = rented(seen([builders.offer()], left=HOURS + OVERHEAD + 0.2))
    assert made.tenure is Tenure.ON_DEMAND


def test_by_the_rule_of_slack_it_waits_for_capacity_until_slack_is_short() -> None:
    waits = decided(seen([ASK_ONLY], left=HOURS + OVERHEAD + 1.1), learn=False)
    assert isinstance(waits, Hold)
    assert waits.reason.code == "waits_for_capacity"
    assert rented(seen([ASK_ONLY], left=HOURS + OVERHEAD + 0.9), learn=False).tenure is Tenure.ON_DEMAND


def test_the_straight_line_of_uniform_progress_is_kept_where_it_is_asked_for() -> None:
    behind = seen([ASK_ONLY], left=50.0, done=1.0, asked_hours=50)
    assert isinstance(decided(behind, learn=False), Hold)
    assert rented(behind, learn=False, pace=1.0).tenure is Tenure.ON_DEMAND
    ahead = seen([ASK_ONLY], left=50.0, done=6.0, asked_hours=50)
    assert isinstance(decided(ahead, learn=False, pace=1.0), Hold)


def test_what_runs_interruptible_is_left_when_a_loss_could_not_be_made_good() -> None:
    held = builders.lease(9)
    assert isinstance(decided(seen([builders.offer()], [held], left=HOURS + 1.5)), Hold)
    made = rented(seen([builders.offer()], [held], left=HOURS + 0.5))
    assert (made.tenure, made.reason.code) == (Tenure.ON_DEMAND, "deadline")


def test_a_lost_lease_cannot_start_by_itself_before_it_is_left() -> None:
    fleet = seen([ASK_ONLY], [lost()], left=HOURS + 0.5)
    assert isinstance(decided(fleet), Pause)
    then = seen([ASK_ONLY], [lost(paused_by_us=True)], left=HOURS + 0.5)
    assert rented(then).tenure is Tenure.ON_DEMAND


def test_a_slot_that_moved_all_day_is_still_saved() -> None:
    held = lost(paused_by_us=True)
    marks = tuple(tally("ran", f"train/0@l{number}") for number in range(9))
    assert rented(seen([ASK_ONLY], [held], left=HOURS + 0.5, tallies=marks)).tenure is Tenure.ON_DEMAND


def test_on_demand_is_left_again_while_there_is_slack_and_kept_without() -> None:
    back = rented(seen([builders.offer()], [on_demand()], left=50.0))
    assert (back.tenure, back.reason.code) == (Tenure.INTERRUPTIBLE, "return")
    kept = decided(seen([builders.offer()], [on_demand()], left=HOURS + 1.2))
    assert isinstance(kept, Hold)
    dwells = decided(seen([builders.offer()], [on_demand(state_since=AGO(minutes=20))], left=50.0))
    assert isinstance(dwells, Hold)


def test_a_move_for_which_there_is_no_time_left_is_given_up_for_on_demand() -> None:
    arriving = builders.lease(8, state=LeaseState.STARTING, opened_at=AGO(minutes=1), state_since=AGO(minutes=1))
    made = decided(seen([builders.offer()], [lost(paused_by_us=True), arriving], left=HOURS + 0.5))
    assert isinstance(made, Release)
    assert made.lease == arriving
    waits = decided(seen([builders.offer()], [lost(paused_by_us=True), arriving], left=50.0))
    assert isinstance(waits, Hold)


def test_a_move_that_would_miss_the_deadline_is_given_up_also_while_nothing_may_be_paid_for() -> None:
    """Held on to, it would be ready in a while and the on-demand lease would go; that could not be rented again."""
    arriving = builders.lease(8, state=LeaseState.STARTING, opened_at=AGO(minutes=1), state_since=AGO(minutes=1))

    def unpaid(held: Lease) -> Decision:
        view = builders.view(offers=(builders.offer(),), no_spend_because="spend = false")
        return decided(seen(leases=[held, arriving], left=HOURS + 0.5, markets={"vast": view}))

    made = unpaid(on_demand())
    assert isinstance(made, Release)
    assert made.lease == arriving
    kept = unpaid(lost(paused_by_us=True))
    assert isinstance(kept, Hold), "nothing else runs and nothing else can be rented"
    assert kept.reason.limit == "no_spend"


def test_a_slower_gpu_needs_more_time_and_a_measured_one_what_was_measured() -> None:
    slow = builders.offer(2, floor=None, gpu=RTX_3090, dlperf=40.0)
    like: dict[str, Any] = {
        "work": {"requirements": builders.requirements(gpu_models=())},
        "reference": builders.RTX_4090,
    }
    typical = {(builders.RTX_4090, 1): 80.0}
    fleet = seen([slow], left=19.0, typical=typical, **like)
    assert rented(fleet).reason.options[-1].terms[2].figure == 0.5
    speeds = (Speed("train", RTX_3090, 9.5, 9.5),)
    measured = decided(seen([slow], left=19.0, typical=typical, speeds=speeds, **like))
    assert isinstance(measured, Hold)
    assert measured.reason.options[-1].terms[2].figure == pytest.approx(0.975)


def test_a_reference_that_no_search_asks_for_counts_by_its_benchmark() -> None:
    """Ten hours on an H100 SXM are more than forty on the RTX 4090 that is searched for."""
    offers = [builders.offer(), ASK_ONLY]
    h100 = gpu.model("H100 SXM")
    made = rented(seen(offers, left=46.0, reference=h100))
    assert made.tenure is Tenure.ON_DEMAND
    assert made.reason.options[-1].terms[2].figure == pytest.approx(80.0 / card_benchmarks.dlperf(h100))
    assert "DLPerf of" not in made.reason.sentence
    shown = seen(offers, left=46.0, reference=h100, typical={(h100, 1): 160.0})
    assert rented(shown).tenure is Tenure.INTERRUPTIBLE, "offers that were seen outweigh the benchmark"


def test_a_reference_of_unknown_speed_is_told() -> None:
    made = decided(seen([builders.offer()], reference=gpu.model("RTX 9999")))
    assert made.reason.sentence.endswith(
        "; the DLPerf of RTX 9999 is unknown, so every GPU without a measured speed counts as fast as that"
    )


def test_an_on_demand_lease_that_is_too_slow_for_the_deadline_is_left_for_an_offer_that_is_in_time() -> None:
    """The cheapest ask was rented, and its host turned out to do half an hour of work in an hour."""
    slow = on_demand(gpu=RTX_3090, dlperf=40.0)
    like: dict[str, Any] = {
        "work": {"requirements": builders.requirements(gpu_models=(RTX_3090, builders.RTX_4090))},
        "reference": builders.RTX_4090,
        "typical": {(builders.RTX_4090, 1): 80.0, (RTX_3090, 1): 40.0},
        "speeds": (Speed("train", RTX_3090, 4.0, 8.0),),
    }
    in_time = decided(seen([ASK_ONLY], [slow], left=21.0, **like))
    assert isinstance(in_time, Hold)
    assert "done 1.00 h before the deadline" in in_time.reason.sentence
    made = rented(seen([ASK_ONLY], [slow], left=19.0, **like))
    assert (made.tenure, made.offer.host_id, made.reason.code) == (Tenure.ON_DEMAND, "h2", "deadline")
    assert "needs 20.00 h for the rest of the work, and 19.00 h are left" in made.reason.sentence
    both_late = decided(seen([ASK_ONLY], [slow], left=10.2, **like))
    assert isinstance(both_late, Hold)
    assert "9.80 h late" in both_late.reason.sentence
    ran_all_day = tuple(tally("ran", f"train/0@l{number}") for number in range(24))
    assert isinstance(decided(seen([ASK_ONLY], [slow], left=19.0, tallies=ran_all_day, **like)), Hold)


def test_slow_starts_of_our_own_are_reserved_for() -> None:
    starts = tuple(Start(f"l{number}", "vast", NOW, 7200.0) for number in range(20))
    made = rented(seen([builders.offer()], left=HOURS + 2.0, starts=starts))
    assert made.tenure is Tenure.ON_DEMAND


def test_without_checkpoints_all_that_is_done_is_at_stake() -> None:
    nothing_kept = {"checkpoint": Checkpoint(place=CheckpointPlace.NONE)}
    held = builders.lease(9)
    assert isinstance(decided(seen([builders.offer()], [held], left=9.0, done=5.0)), Hold)
    made = rented(seen([builders.offer()], [held], left=9.0, done=5.0, work=nothing_kept))
    assert made.tenure is Tenure.ON_DEMAND


def test_when_all_is_done_nothing_more_is_rented() -> None:
    made = decided(seen([builders.offer()], done=10.0, left=0.5))
    assert isinstance(made, Hold)
    assert made.reason.code == "work_done"


def test_a_workload_without_a_deadline_is_told_what_is_missing() -> None:
    fleet = builders.fleet(
        workloads=(builders.workload(strategy="deadline"),), markets={"vast": builders.view(offers=(builders.offer(),))}
    )
    made = decided(fleet)
    assert isinstance(made, Hold)
    assert made.reason.code == "no_deadline"


def test_what_is_lost_already_is_said() -> None:
    made = rented(seen([builders.offer()], left=5.0))
    assert made.tenure is Tenure.ON_DEMAND
    assert "cannot be met" in made.reason.sentence


@given(
    st.floats(0.0, 60.0),
    st.floats(0.0, 10.0),
    st.booleans(),
    st.sampled_from(["empty", "lost", "parked", "starting", "running", "on_demand", "moving"]),
    st.floats(0, 10),
    st.floats(0, 1),
)
def test_from_the_last_call_on_nothing_but_on_demand_is_rented(
    left: float, done: float, has_bid: bool, state: str, slack_share: float, pace: float
) -> None:
    leases: dict[str, list[Lease]] = {
        "empty": [],
        "lost": [lost()],
        "parked": [lost(paused_by_us=True)],
        "starting": [builders.lease(9, state=LeaseState.STARTING)],
        "running": [builders.lease(9)],
        "on_demand": [on_demand()],
        "moving": [on_demand(), builders.lease(8, state=LeaseState.STARTING, opened_at=AGO(minutes=1))],
    }
    offers = [ASK_ONLY, *([builders.offer()] if has_bid else [])]
    made = decided(seen(offers, leases[state], left=left, done=done), slack_share=slack_share, pace=pace)
    terms = {term.name: term.figure for term in made.reason.options[-1].terms} if made.reason.options else {}
    if terms.get("slack", 1.0) > 0 or done >= HOURS:
        return
    if isinstance(made, Rent):
        assert made.tenure is Tenure.ON_DEMAND
    elif state in {"empty", "parked", "starting", "running"}:
        raise AssertionError(made)
    elif state == "lost":
        assert isinstance(made, Pause)
    elif state == "moving":
        assert isinstance(made, Release)


GOOD = (0.4, 3.2)
"""The model of a pool that loses little and has more soon."""


def known(*, is_there: bool, hours: float, model: tuple[float, float] | None = None) -> dict[str, Capacity]:
    """The observed capacity of the workload: there or away for so long, all of it of one model."""
    evidence = tuple(20.0 * (factors == model) for factors in hazards.SHIPPED.factors)
    return {"train": Capacity(is_there, AGO(hours=hours), NOW, evidence, builders.per_hour("0.20"))}


def dollars(made: Decision) -> dict[str, float]:
    return {option.name: option.dollars for option in made.reason.options}


def test_it_waits_for_capacity_that_just_went_and_not_for_one_long_gone() -> None:
    just, long = (
        decided(seen([ASK_ONLY], left=HOURS + OVERHEAD + 1.4, capacity=known(is_there=False, hours=hours, model=GOOD)))
        for hours in (0.0, 12.0)
    )
    assert isinstance(just, Hold)
    assert just.reason.code == "waits_for_capacity"
    assert isinstance(long, Rent)
    assert (long.tenure, long.reason.code) == (Tenure.ON_DEMAND, "deadline")
    assert dollars(just)["waiting"] < dollars(just)["on demand"]
    assert dollars(long)["waiting"] > dollars(long)["on demand"]
    assert "expected to finish for" in long.reason.sentence


@pytest.mark.parametrize("is_lost", [True, False])
def test_capacity_that_no_bid_fits_is_gone_as_long_as_the_slot_is_idle(is_lost: bool) -> None:
    """The looks count a floor within the price. It is above what may be bid beside the host's own ask."""
    beyond = builders.offer(3, floor=builders.per_hour("0.39"))

    def idle(hours: float) -> Decision:
        leases = [lost(paused_by_us=True, state_since=AGO(hours=hours))] if is_lost else []
        told: dict[str, Any] = {} if is_lost else {"vacated": {builders.slot(): AGO(hours=hours)}}
        capacity = known(is_there=True, hours=12.0, model=GOOD)
        return decided(seen([beyond], leases, left=HOURS + OVERHEAD + 1.4, capacity=capacity, **told))

    assert idle(0.0).reason.code in {"waits_for_capacity", "resume"}
    made = idle(12.0)
    assert isinstance(made, Rent)
    assert (made.tenure, made.reason.code) == (Tenure.ON_DEMAND, "deadline")


def test_what_a_pool_showed_changes_what_finishing_is_expected_to_cost() -> None:
    good, bad = (
        decided(seen([ASK_ONLY], left=50.0, capacity=known(is_there=False, hours=1.0, model=model)))
        for model in (GOOD, (3.2, 0.4))
    )
    assert dollars(good)["waiting"] < 0.8 * dollars(bad)["waiting"]


def test_on_demand_is_left_for_capacity_that_stays_and_not_for_one_that_just_came() -> None:
    offers, held = [builders.offer()], [on_demand()]
    brittle, lasting = (
        decided(seen(offers, held, left=HOURS + 1.75, capacity=known(is_there=True, hours=hours)), reserve="1m")
        for hours in (0.0, 24.0)
    )
    assert isinstance(lasting, Rent)
    assert lasting.reason.code == "return"
    assert isinstance(brittle, Hold)


def test_what_runs_on_demand_counts_at_its_own_rate_and_not_at_that_of_the_next_offer() -> None:
    """The host of a lease is no offer while we hold it: the remaining offers say nothing about the cost of staying."""
    dear, cheap = (
        decided(
            seen(
                [builders.offer(floor=builders.per_hour("0.10"), ask=builders.per_hour(ask))],
                [on_demand(gpu_rate=builders.per_hour("0.40"))],
                left=20.0,
            )
        )
        for ask in ("0.90", "0.30")
    )
    assert dollars(dear)["on demand"] == pytest.approx(dollars(cheap)["on demand"], rel=0.05)


def test_without_an_ask_nothing_is_reckoned_and_it_still_bids() -> None:
    made = rented(seen([builders.offer(ask=None)]))
    assert made.tenure is Tenure.INTERRUPTIBLE
    assert "waiting" not in dollars(made)
