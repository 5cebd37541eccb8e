"""After an interruption: wait, raise, start again or move, by the cost of each."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.moves import recovery
from agent.decide.moves.recovery import RecoveryParams
from agent.decide.pricing import useful_hour
from agent.decide.pricing.useful_hour import Way
from agent.decide.strategy import Candidate, Down, Proposal, SlotView
from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from tests.support import builders

NOW = builders.NOW
PLACE = builders.slot()
WORTH = builders.per_hour("1.00")
NUMBERS = RecoveryParams(builders.per_hour("0.36"), 0.05, 0.05, may_move=True, may_raise=True, worth=WORTH)
DISK = Checkpoint(place=CheckpointPlace.DISK)
REMOTE = Checkpoint(place=CheckpointPlace.REMOTE)


def lost(cause: Cause | None = Cause.OUTBID, *, minutes: float = 5, **changes: Any) -> Lease:
    """Build a lease that the market took some minutes ago."""
    values = {"state": LeaseState.PAUSED, "interrupted_by": cause, "state_since": builders.ago(minutes=minutes)}
    return builders.lease(**{**values, **changes})


def recovered(
    held: Lease,
    *,
    best: Candidate | None = None,
    quotes: tuple[str, ...] = (),
    numbers: RecoveryParams = NUMBERS,
    work: Workload | None = None,
    hazard: float = 0.15,
) -> Proposal:
    """Recover one slot."""
    down = Down(held.state_since, tuple(builders.per_hour(quote) for quote in quotes))
    slot = SlotView(PLACE, held, None, down)
    others = [best] if best is not None else []
    return recovery.recover(slot, work or builders.workload(), others, hazard, numbers, NOW)


def names(proposal: Proposal) -> list[str]:
    return [option.name for option in proposal.reason.options]


def dollars(proposal: Proposal) -> dict[str, float]:
    return {option.name: option.dollars for option in proposal.reason.options}


def test_with_nothing_else_to_do_it_waits() -> None:
    made = recovered(lost())
    assert (made.kind, made.reason.code, names(made)) == (None, "wait_paused", ["wait", "let_go"])


@pytest.mark.parametrize("is_paused_by_us", [False, True])
def test_it_is_told_that_the_only_checkpoint_keeps_a_lease_where_it_is(*, is_paused_by_us: bool) -> None:
    held = lost(paused_by_us=is_paused_by_us)
    stuck = recovered(held, work=builders.workload(checkpoint=DISK)).reason.sentence
    assert "it is not moved, because its disk may hold the only checkpoint" in stuck
    assert 'at = "remote" in [workloads.train.checkpoint]' in stuck
    assert "may_lose_disk = true" in stuck
    for free in (builders.workload(checkpoint=DISK, may_lose_disk=True), builders.workload(checkpoint=REMOTE)):
        assert "only checkpoint" not in recovered(held, work=free).reason.sentence


@pytest.mark.parametrize(
    ("order", "lease"),
    [("raise", {"rival_floor": builders.per_hour("0.23")}), ("resume", {"cause": Cause.OUT_OF_CREDIT})],
)
def test_while_an_order_that_was_refused_rests_another_way_is_taken(order: str, lease: dict[str, Any]) -> None:
    """The same order was proposed again at each pass and held back, and its slot was idle beside other offers."""
    held, best = lost(**lease), builders.candidate(builders.offer(2))
    work = builders.workload(checkpoint=REMOTE)
    free, rests = (Down(held.state_since, refused=refused) for refused in (frozenset[str](), frozenset({order})))
    made = recovery.recover(SlotView(PLACE, held, None, free), work, [best], 0.15, NUMBERS, NOW)
    assert (made.candidate, order in names(made)) == (None, True)
    made = recovery.recover(SlotView(PLACE, held, None, rests), work, [best], 0.15, NUMBERS, NOW)
    assert (made.candidate, order in names(made)) == (best, False)


@pytest.mark.parametrize(("hours", "is_moved"), [(math.inf, True), (2.5, True), (0.2, False), (0.0, False)])
def test_a_move_must_pay_before_the_window_of_the_slot_closes(hours: float, *, is_moved: bool) -> None:
    """One was made minutes before its release: its traffic was paid for nothing."""
    held, best = lost(minutes=60), builders.candidate(builders.offer(2), traffic_dollars=0.1)
    slot = SlotView(PLACE, held, None, Down(held.state_since), hours_left=hours)
    made = recovery.recover(slot, builders.workload(checkpoint=REMOTE), [best], 0.15, NUMBERS, NOW)
    assert (made.candidate is best) is is_moved
    assert f"over {min(hours, 2.0):g} h" in made.reason.sentence


def test_a_known_rival_within_the_ceiling_is_beaten() -> None:
    made = recovered(lost(rival_floor=builders.per_hour("0.25")))
    assert (made.kind, made.reason.code) == (IntentKind.REBID, "raise_bid")
    assert made.bid is not None
    assert builders.per_hour("0.25") < made.bid <= NUMBERS.ceiling
    assert made.lease is not None


@pytest.mark.parametrize(
    ("rival", "is_paused_by_us", "is_raised"), [("0.25", True, True), ("0.21", True, False), ("0.21", False, True)]
)
def test_what_we_stopped_at_a_bid_that_wins_is_started_and_its_bid_not_raised(
    rival: str, *, is_paused_by_us: bool, is_raised: bool
) -> None:
    """After a move that was refused, the bid of the paused lease was raised twice before its start."""
    held = lost(paused_by_us=is_paused_by_us, rival_floor=builders.per_hour(rival))
    assert ("raise" in names(recovered(held))) is is_raised


def test_a_rival_above_the_ceiling_is_not_chased() -> None:
    assert names(recovered(lost(rival_floor=builders.per_hour("0.37")))) == ["wait", "let_go"]


def test_the_hosts_own_floor_is_never_underbid() -> None:
    made = recovered(lost(rival_floor=builders.per_hour("0.20"), host_floor=builders.per_hour("0.30")))
    assert made.bid is not None
    assert made.bid > builders.per_hour("0.30")


def test_our_own_echo_is_no_reason_to_raise() -> None:
    """The echo trap: the slice is quoted at our own bid."""
    assert names(recovered(lost(), quotes=("0.22", "0.2204"))) == ["wait", "let_go"]
    raised = lost(gpu_rate=builders.per_hour("0.30"), recent_bids=(builders.per_hour("0.22"),))
    assert names(recovered(raised, quotes=("0.22", "0.30"))) == ["wait", "let_go"]


def test_what_already_bids_enough_is_not_raised() -> None:
    assert names(recovered(lost(gpu_rate=builders.per_hour("0.35"), rival_floor=builders.per_hour("0.25")))) == [
        "wait",
        "let_go",
    ]


@pytest.mark.parametrize(
    "cause", [Cause.DISPLACED, Cause.HOST_OFFLINE, Cause.HOST_GONE, Cause.CONTRACT_END], ids=lambda cause: cause.value
)
def test_no_bid_helps_against_what_outranks_bids(cause: Cause) -> None:
    assert "raise" not in names(recovered(lost(cause, rival_floor=builders.per_hour("0.25"))))


def test_on_demand_has_no_bid_to_raise() -> None:
    held = lost(tenure=Tenure.ON_DEMAND, rival_floor=builders.per_hour("0.25"))
    assert "raise" not in names(recovered(held))


def test_a_strategy_may_forbid_raises_and_moves() -> None:
    stubborn = RecoveryParams(NUMBERS.ceiling, 0.05, 0.0, may_move=False, may_raise=False, worth=WORTH)
    held = lost(minutes=60, rival_floor=builders.per_hour("0.25"))
    assert names(recovered(held, best=builders.candidate(), numbers=stubborn)) == ["wait"]


@pytest.mark.parametrize("tenure", [Tenure.INTERRUPTIBLE, Tenure.ON_DEMAND])
def test_a_move_first_cancels_what_could_start_the_old_lease(tenure: Tenure) -> None:
    made = recovered(lost(Cause.DISPLACED, minutes=30, tenure=tenure), best=builders.candidate(builders.offer(2)))
    assert (made.kind, made.reason.code) == (IntentKind.PAUSE, "cancel_start")
    assert made.lease is not None
    assert made.candidate is not None, "limits cannot tell whether the move may be made at all"


@pytest.mark.parametrize(
    "changes",
    [{"paused_by_us": True}, {"interrupted_by": Cause.HOST_OFFLINE}],
    ids=str,
)
def test_what_cannot_start_by_itself_is_left_at_once(changes: dict[str, Any]) -> None:
    best = builders.candidate(builders.offer(2))
    made = recovered(lost(**{"interrupted_by": Cause.DISPLACED, **changes, "minutes": 30}), best=best)
    assert (made.kind, made.candidate) == (IntentKind.RENT, best)


def test_a_move_to_on_demand_is_called_so() -> None:
    best = Candidate(builders.offer(2), Way(Tenure.ON_DEMAND, builders.per_hour("0.3")), builders.candidate().reckoning)
    assert "on_demand" in names(recovered(lost(Cause.DISPLACED, minutes=30), best=best))


def test_the_only_checkpoint_is_never_left_behind() -> None:
    best = builders.candidate(builders.offer(2))
    on_disk = builders.workload(checkpoint=DISK)
    assert names(recovered(lost(Cause.DISPLACED, minutes=300), best=best, work=on_disk)) == ["wait"]
    never_ran = lost(Cause.DISPLACED, minutes=300, has_run=False)
    assert "move" in names(recovered(never_ran, best=best, work=on_disk))


def test_a_disk_that_may_be_lost_is_priced_with_its_work() -> None:
    best = builders.candidate(builders.offer(2))
    losable = builders.workload(checkpoint=DISK, may_lose_disk=True)
    remote = builders.workload()
    held = lost(Cause.DISPLACED, minutes=30, opened_at=builders.ago(hours=10, minutes=30))
    with_work = dollars(recovered(held, best=best, work=losable))["move"]
    without = dollars(recovered(held, best=best, work=remote))["move"]
    assert with_work - without == pytest.approx(10 * 0.22)


def carried(held: Lease, **changes: Any) -> Lease:
    """Return a lease whose checkpoint the bucket was found to have since it was paused."""
    rented = kept_terms.recorded(msgspec.structs.replace(held, guard_run=1), builders.guarded())
    return msgspec.structs.replace(rented, checkpoint_verified_at=NOW, **changes)


def test_a_disk_whose_checkpoint_is_in_the_bucket_is_priced_with_the_work_since() -> None:
    best = builders.candidate(builders.offer(2))
    held = lost(Cause.DISPLACED, minutes=30, opened_at=builders.ago(hours=10, minutes=30))
    guarded = builders.guarded(checkpoint=DISK)
    taken = held.state_since - timedelta(hours=2)
    without = dollars(recovered(held, best=best, work=builders.guarded()))
    for since, hours in ((taken, 2), (None, 10)):
        made = recovered(carried(held, checkpoint_taken_at=since), best=best, work=guarded)
        for way in ("move", "let_go"):
            assert dollars(made)[way] - without[way] == pytest.approx(hours * 0.22)
    assert names(recovered(held, best=best, work=guarded)) == ["wait"]


def test_it_is_told_why_a_guarded_disk_may_go_or_stays() -> None:
    guarded = builders.guarded(checkpoint=DISK)
    free = recovered(carried(lost(), checkpoint_taken_at=builders.ago(minutes=6)), work=guarded).reason.sentence
    assert f"its disk may go: the bucket has its checkpoint of {builders.ago(minutes=6):%H:%M} UTC, verified" in free
    unknown = recovered(carried(lost()), work=guarded).reason.sentence
    assert "its disk may go: the bucket has its checkpoint, verified" in unknown
    slot = SlotView(PLACE, lost(), None, Down(lost().state_since, (), "file 1 of it differs"))
    stuck = recovery.recover(slot, guarded, [], 0.15, NUMBERS, NOW).reason.sentence
    assert "may hold the only checkpoint and file 1 of it differs: where checkpoints are kept elsewhere" in stuck


def test_a_disk_that_is_let_go_is_priced_with_its_work() -> None:
    held = lost(Cause.DISPLACED, minutes=30, opened_at=builders.ago(hours=10, minutes=30))
    losable, remote = builders.workload(checkpoint=DISK, may_lose_disk=True), builders.workload()
    with_work, without = dollars(recovered(held, work=losable)), dollars(recovered(held, work=remote))
    assert with_work["let_go"] - without["let_go"] == pytest.approx(10 * 0.22)


@pytest.mark.parametrize("cause", [Cause.CONTAINER_EXIT, Cause.EXTERNAL_STOP], ids=lambda cause: cause.value)
def test_what_somebody_stopped_rests_before_it_is_started_again(cause: Cause) -> None:
    early = recovered(lost(cause, minutes=9.9))
    assert (early.kind, early.reason.code) == (None, "cool_off")
    late = recovered(lost(cause, minutes=10))
    assert (late.kind, late.reason.code) == (IntentKind.RESUME, "resume")


def test_our_own_pause_is_ended_by_a_resume() -> None:
    made = recovered(lost(None, paused_by_us=True))
    assert (made.kind, names(made)) == (IntentKind.RESUME, ["resume"])


def test_out_of_credit_is_started_again() -> None:
    assert recovered(lost(Cause.OUT_OF_CREDIT)).kind is IntentKind.RESUME


def test_a_resume_against_a_rival_is_priced_as_a_wait() -> None:
    parked = dollars(recovered(lost(Cause.OUTBID, paused_by_us=True)))["resume"]
    own = dollars(recovered(lost(None, paused_by_us=True)))["resume"]
    assert parked > own


@given(st.floats(0, 600), st.floats(0, 600))
def test_the_longer_it_is_down_the_longer_it_is_expected_to_stay_down(minutes: float, more: float) -> None:
    now = dollars(recovered(lost(minutes=minutes)))["wait"]
    later = dollars(recovered(lost(minutes=minutes + more)))["wait"]
    assert later >= now - 1e-9


@pytest.mark.parametrize("minutes", [5, 60, 90, 600])
def test_what_never_ran_comes_back_at_its_own_rate_as_long_as_that_was_recorded(minutes: float) -> None:
    """Idle time is the integral of being down, cut at the horizon."""
    idle = recovery._idle_hours(lost(has_run=False), timedelta(minutes=minutes))
    steps, down, summed = 20_000, 1.0, 0.0
    width = recovery.HORIZON_HOURS / steps
    for step in range(steps):
        is_recorded = minutes / 60 + (step + 0.5) * width < 1.5
        rate = recovery.NEVER_STARTED_RESUME_PER_HOUR if is_recorded else recovery.LATE_RESUME_PER_HOUR
        summed += down * width
        down *= 1 - rate * width
    assert idle == pytest.approx(summed, rel=1e-3)


def test_what_never_ran_is_not_waited_for_without_end() -> None:
    """The rate of its return is known for 90 minutes; a person who stopped it shows the same states for ever."""
    best = builders.candidate(builders.offer(2), traffic_dollars=0.9)
    assert recovered(lost(has_run=False, minutes=30), best=best).reason.code == "wait_paused"
    assert recovered(lost(has_run=False, minutes=91), best=best).kind is not None


def test_what_ran_comes_back_early_or_hardly_ever() -> None:
    fresh = recovery._idle_hours(lost(), timedelta())
    early = recovery.EARLY_RESUME / timedelta(hours=1)
    waited, resumed = useful_hour.stay(recovery.EARLY_RESUME_PER_HOUR, early)
    assert resumed == pytest.approx(9 / 48, abs=0.002)
    late, _ = useful_hour.stay(recovery.LATE_RESUME_PER_HOUR, recovery.HORIZON_HOURS - early)
    assert fresh == pytest.approx(waited + (39 / 48) * late, rel=0.002)


@pytest.mark.parametrize("cause", [Cause.HOST_GONE, Cause.CONTRACT_END], ids=lambda cause: cause.value)
def test_what_is_gone_never_comes_back(cause: Cause) -> None:
    assert recovery._idle_hours(lost(cause), timedelta()) == recovery.HORIZON_HOURS


@given(
    st.sampled_from(Cause),
    st.floats(0, 600),
    st.booleans(),
    st.none() | st.integers(1, 600_000),
    st.floats(0, 1),
    st.integers(1, 600_000),
    st.booleans(),
)
def test_the_choice_is_the_cheapest_that_gains_enough(
    cause: Cause, minutes: float, has_run: bool, rival: int | None, gain: float, ceiling: int, is_move_open: bool
) -> None:
    held = lost(cause, minutes=minutes, has_run=has_run, rival_floor=None if rival is None else UsdPerHour(rival))
    numbers = RecoveryParams(UsdPerHour(ceiling), 0.05, gain, may_move=is_move_open, may_raise=True, worth=WORTH)
    made = recovered(held, best=builders.candidate(builders.offer(2)), numbers=numbers)
    if made.bid is not None:
        assert held.gpu_rate < made.bid <= numbers.ceiling
    if not made.reason.options:
        assert made.reason.code == "cool_off"
        return
    rest, cheapest = made.reason.options[0].dollars, min(option.dollars for option in made.reason.options)
    is_rest = made.reason.code in {"wait_paused", "resume", "wait_raised"}
    assert is_rest is not (rest - cheapest > gain * rest)


@given(st.floats(0, 600))
def test_ways_are_told_with_terms_that_add_up(minutes: float) -> None:
    made = recovered(lost(Cause.OUTBID, minutes=minutes), best=builders.candidate(builders.offer(2)))
    for option in made.reason.options:
        terms = [term.figure for term in option.terms if term.unit == "$"]
        assert sum(terms) == pytest.approx(option.dollars)


@pytest.mark.parametrize(("worth", "code"), [("1.00", "cancel_start"), ("0.05", "not_needed")])
def test_an_hour_worth_little_is_not_paid_for_elsewhere(worth: str, code: str) -> None:
    held = lost(minutes=60)
    numbers = replace(NUMBERS, worth=builders.per_hour(worth))
    made = recovered(held, best=builders.candidate(builders.offer(2)), numbers=numbers)
    assert made.reason.code == code


def test_recover_needs_a_lease_that_is_down() -> None:
    for slot in (SlotView(PLACE, None), SlotView(PLACE, builders.lease())):
        with pytest.raises(ValueError, match="down"):
            recovery.recover(slot, builders.workload(), [], 0.1, NUMBERS, NOW)


@pytest.mark.parametrize(
    ("runs", "tenure", "moves"),
    [
        (recovery.MOST_RUNS - 2, Tenure.INTERRUPTIBLE, True),
        (recovery.MOST_RUNS - 1, Tenure.INTERRUPTIBLE, False),
        (recovery.MOST_RUNS - 1, Tenure.ON_DEMAND, True),
        (recovery.MOST_RUNS, Tenure.ON_DEMAND, False),
    ],
)
def test_a_slot_moves_so_often_a_day_and_the_last_time_to_on_demand(runs: int, tenure: Tenure, moves: bool) -> None:
    held = lost(minutes=60)
    slot = SlotView(PLACE, held, None, Down(held.state_since), runs)
    other = replace(builders.candidate(builders.offer(2)), way=Way(tenure, builders.per_hour("0.20")))
    made = recovery.recover(slot, builders.workload(), [other], 0.1, NUMBERS, NOW)
    assert ({"move", "on_demand"} & set(names(made)) != set()) == moves


def test_a_host_that_is_gone_for_good_is_left_however_often_the_slot_moved() -> None:
    held = lost(Cause.HOST_GONE, minutes=60)
    slot = SlotView(PLACE, held, None, Down(held.state_since), 99)
    assert "move" in names(recovery.recover(slot, builders.workload(), [builders.candidate()], 0.1, NUMBERS, NOW))


@pytest.mark.parametrize(
    ("minutes", "disk", "is_let_go"), [(30, "0.06", True), (2, "0.06", False), (30, "0.002", False)]
)
def test_a_disk_that_nothing_needs_is_let_go_once_it_hardly_comes_back(
    minutes: int,
    disk: str,
    is_let_go: bool,
) -> None:
    held = lost(Cause.DISPLACED, minutes=minutes, disk_rate=builders.per_hour(disk))
    made = recovered(held, numbers=replace(NUMBERS, worth=builders.per_hour("0.45")))
    assert (made.kind is IntentKind.RELEASE) is is_let_go
    assert made.reason.code == ("not_needed" if is_let_go else "wait_paused")


def test_a_disk_that_may_hold_the_only_checkpoint_is_never_let_go() -> None:
    on_disk = builders.workload(checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    held = lost(Cause.DISPLACED, minutes=300, disk_rate=builders.per_hour("0.2"))
    assert recovered(held, work=on_disk).kind is None
