"""A last checkpoint before our own ending.

Who is asked, how long it is waited for, and the endings that do not wait.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import plan
from agent.decide.moves import last_checkpoint
from agent.decide.operators import operator_holds
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Hold, Pause, Reason, Release
from agent.domain.work.guard_report import GuardBeat, GuardReport
from agent.domain.work.workload import Workload
from tests.support import builders
from tests.support.scene import strategies

NOW = builders.NOW
WORK = builders.guarded()
WITHIN = WORK.guard.final_within if WORK.guard is not None else timedelta()
RUNS = builders.lease(guard_run=1)
BEAT = GuardBeat(version=1, sequence=7, lease=RUNS.intent_id, phase="running")
MOVED = Reason("moved", "the workload runs on another host")


def reported(
    beat: GuardBeat | None = BEAT, ago: timedelta = timedelta(), since: timedelta = timedelta()
) -> GuardReport:
    return GuardReport(NOW - ago, beat, beat_seen_at=NOW - ago - since)


def fleet(*leases: Lease, work: Workload = WORK, reports: Mapping[str, GuardReport] | None = None) -> Fleet:
    told = {held.intent_id: reported() for held in leases[:1]} | dict(reports or {})
    return builders.fleet(workloads=(work,), leases=leases, guard_reports=told)


def waits(ending: Pause | Release, made: Fleet) -> bool:
    decision, asked = last_checkpoint.instead(ending, made)
    assert isinstance(decision, Hold) is (asked is not None)
    return asked is not None


def asked(ago: timedelta = timedelta(), held: Lease = RUNS) -> Lease:
    return msgspec.structs.replace(held, checkpoint_asked_at=NOW - ago)


@pytest.mark.parametrize("kind", [Pause, Release])
def test_an_ending_of_ours_asks_first_and_says_until_when(kind: type[Pause] | type[Release]) -> None:
    decision, waiting = last_checkpoint.instead(kind(RUNS, MOVED), fleet(RUNS))
    assert isinstance(decision, Hold)
    assert waiting is not None
    assert (decision.reason.code, waiting.since, waiting.ending.reason) == ("last_checkpoint", NOW, MOVED)
    assert (
        "asked at 12:00:00 UTC for a last checkpoint, and has until 12:00:08 and the next poll"
        in decision.reason.sentence
    )
    assert waiting.order == f"{RUNS.intent_id}-{int(NOW.timestamp())}"


def test_it_waits_for_final_within_and_asks_the_same_again_meanwhile() -> None:
    for span, is_waiting in ((timedelta(), True), (WITHIN - timedelta(microseconds=1), True), (WITHIN, False)):
        held = asked(span)
        decision, waiting = last_checkpoint.instead(Release(held, MOVED), fleet(held))
        assert (waiting is not None) is is_waiting
        if waiting is not None:
            assert waiting.since == held.checkpoint_asked_at
        else:
            assert isinstance(decision, Release)
            assert decision.reason.code == "moved"
            assert "carried no checkpoint that was asked for at 11:59:52 UTC" in decision.reason.sentence


def test_the_answer_to_this_order_ends_the_wait_and_no_other_does() -> None:
    held = asked(timedelta(seconds=5))
    order = f"{held.intent_id}-{int(NOW.timestamp()) - 5}"
    right, wrong = (msgspec.structs.replace(BEAT, answered=told) for told in (order, f"{order}0"))
    done, _ = last_checkpoint.instead(Release(held, MOVED), fleet(held, reports={held.intent_id: reported(right)}))
    assert isinstance(done, Release)
    assert done.reason.sentence.endswith("; its guard has carried the checkpoint that it was asked for at 11:59:55 UTC")
    assert waits(Release(held, MOVED), fleet(held, reports={held.intent_id: reported(wrong)}))


def test_the_wait_begins_when_the_bucket_took_the_order_and_one_that_came_late_is_not_waited_for() -> None:
    held = asked(timedelta(seconds=10))
    order = last_checkpoint.order_of(held, NOW - timedelta(seconds=10))
    for written, is_waiting in ((3, True), (2, False), (0, False), (9, True), (-30, True)):
        at = NOW - timedelta(seconds=10 - written) if written >= 0 else NOW + timedelta(hours=1)
        made = msgspec.structs.replace(fleet(held), orders_written={order: at})
        decision, waiting = last_checkpoint.instead(Release(held, MOVED), made)
        assert (waiting is not None) is is_waiting, written
        if written == 3:
            assert "asked at 11:59:50 UTC for a last checkpoint, and has until 12:00:01" in decision.reason.sentence
        late = msgspec.structs.replace(made, now=NOW + timedelta(seconds=6))
        assert not waits(Release(held, MOVED), late)


def test_a_bucket_that_goes_away_after_the_question_changes_nothing_of_the_time() -> None:
    held = asked(timedelta(seconds=5))
    none = msgspec.structs.replace(fleet(held), guard_reports={})
    assert waits(Release(held, MOVED), none)
    assert not waits(Release(held, MOVED), msgspec.structs.replace(none, now=NOW + timedelta(seconds=3)))


@pytest.mark.parametrize(
    "report",
    [
        None,
        reported(None),
        reported(ago=timedelta(minutes=4)),
        reported(since=timedelta(minutes=4)),
        *(reported(msgspec.structs.replace(BEAT, phase=phase)) for phase in ("restoring", "ending", "done", "failed")),
    ],
    ids=["unread", "never spoke", "bucket away", "silent", "restoring", "ending", "done", "failed"],
)
def test_a_guard_that_is_not_known_to_be_at_work_is_not_waited_for(report: GuardReport | None) -> None:
    made = fleet(RUNS, reports={} if report is None else {RUNS.intent_id: report})
    if report is None:
        made = msgspec.structs.replace(made, guard_reports={})
    assert not waits(Release(RUNS, MOVED), made)


@pytest.mark.parametrize("code", ["ordered", "paused", "done", "killed", "over_budget", "over_rate"])
def test_what_a_person_or_a_hard_cap_ends_does_not_wait(code: str) -> None:
    assert not waits(Pause(RUNS, Reason(code, "now")), fleet(RUNS))
    assert waits(Pause(RUNS, Reason("held", "now")), fleet(RUNS))


@pytest.mark.parametrize(
    "changes",
    [
        *({"state": state} for state in LeaseState if state is not LeaseState.RUNNING),
        {"guard_run": None},
        {"has_failed": True},
    ],
    ids=str,
)
def test_only_a_running_lease_with_a_guard_is_asked(changes: dict[str, Any]) -> None:
    held = msgspec.structs.replace(RUNS, **changes)
    assert not waits(Release(held, MOVED), fleet(held))
    assert not waits(Release(RUNS, MOVED), fleet(RUNS, work=builders.workload()))


def test_a_stretch_of_running_is_asked_once_and_the_next_one_anew() -> None:
    began = msgspec.structs.replace(RUNS, run_since=NOW - timedelta(hours=5))
    for ago in (last_checkpoint.ASK_AGAIN, timedelta(hours=4)):
        again = asked(ago, began)
        assert not waits(Pause(again, MOVED), since_start(fleet(again), timedelta(hours=5)))
    resumed = msgspec.structs.replace(again, run_since=NOW - timedelta(minutes=1))
    assert waits(Release(resumed, MOVED), fleet(resumed))


def test_a_program_that_was_away_for_an_hour_since_the_question_asks_anew() -> None:
    began = msgspec.structs.replace(RUNS, run_since=NOW - timedelta(hours=5))
    for ago, is_anew in ((last_checkpoint.ASK_AGAIN - timedelta(seconds=1), False), (last_checkpoint.ASK_AGAIN, True)):
        held = asked(ago, began)
        assert waits(Release(held, MOVED), since_start(fleet(held), timedelta(minutes=1))) is is_anew


def since_start(made: Fleet, ago: timedelta) -> Fleet:
    return msgspec.structs.replace(made, started_at=NOW - ago)


def test_an_ending_that_is_given_up_is_told_so_unless_its_market_was_not_read() -> None:
    held = asked(timedelta(minutes=5), msgspec.structs.replace(RUNS, run_since=NOW - timedelta(hours=5)))
    made = msgspec.structs.replace(fleet(held), markets={"vast": builders.view(instances=(builders.instance(),))})
    assert plan.plan(made, strategies(), builders.NO_LIMITS).given_up == (held,)
    stale = msgspec.structs.replace(made, markets={"vast": builders.view(is_fresh=False)})
    assert plan.plan(stale, strategies(), builders.NO_LIMITS).given_up == ()
    ended = msgspec.structs.replace(made, holds=(OperatorHold(Word.HELD, hold.of_slot(RUNS.slot), NOW, "look"),))
    assert plan.plan(ended, strategies(), builders.NO_LIMITS).given_up == ()
    never = plan.plan(msgspec.structs.replace(made, leases=(RUNS,)), strategies(), builders.NO_LIMITS)
    assert never.given_up == ()


def test_a_clock_that_was_set_back_lengthens_no_wait() -> None:
    ahead = asked(timedelta(minutes=-30))
    assert not waits(Release(ahead, MOVED), fleet(ahead))


def test_of_two_containers_of_one_slot_one_is_asked_and_the_other_ends() -> None:
    second = builders.lease(2, guard_run=1)
    beat = msgspec.structs.replace(BEAT, lease=second.intent_id)
    both = fleet(RUNS, second, reports={second.intent_id: reported(beat)})
    decisions, waiting = last_checkpoint.settled([Release(RUNS, MOVED), Release(second, MOVED)], both)
    assert [each.lease for each in waiting] == [RUNS]
    assert [type(each) for each in decisions] == [Hold, Release]


def test_the_old_half_of_a_move_is_asked_by_its_own_beat_whatever_the_new_half_says() -> None:
    second = builders.lease(2, guard_run=1)
    beat = msgspec.structs.replace(BEAT, lease=second.intent_id)
    for other in (reported(beat), reported(beat, since=timedelta(minutes=4)), reported(None)):
        assert waits(Release(RUNS, MOVED), fleet(RUNS, second, reports={second.intent_id: other}))
    silent = {RUNS.intent_id: reported(None), second.intent_id: reported(beat)}
    assert not waits(Release(RUNS, MOVED), fleet(RUNS, second, reports=silent))


def test_a_plan_has_the_hold_and_what_it_waits_for_and_frees_no_room_meanwhile() -> None:
    held = OperatorHold(Word.HELD, hold.of_slot(RUNS.slot), NOW, "look")
    made = msgspec.structs.replace(fleet(RUNS), holds=(held,))
    assert [type(each) for each in operator_holds.orders(made, hold.in_force(made.holds, NOW))] == [Pause]
    planned = plan.plan(made, strategies(), builders.NO_LIMITS)
    assert [type(each) for each in planned.decisions] == [Hold]
    assert [(each.lease, type(each.ending)) for each in planned.asked] == [(RUNS, Pause)]
    assert planned.standing.rate == plan.plan(fleet(RUNS), strategies(), builders.NO_LIMITS).standing.rate


def moved() -> Fleet:
    """Return a slot whose new lease is ready: the old one, whose guard speaks, is released for that."""
    new = builders.lease(2, guard_run=1, opened_at=NOW - timedelta(minutes=9))
    old = msgspec.structs.replace(RUNS, opened_at=NOW - timedelta(hours=2))
    view = builders.view(instances=(builders.instance(), builders.instance(2)))
    return msgspec.structs.replace(fleet(old, new), markets={"vast": view})


def test_the_old_half_of_a_move_that_a_person_or_a_cap_ends_too_does_not_wait() -> None:
    planned = plan.plan(moved(), strategies(), builders.NO_LIMITS)
    assert [(type(each.ending), each.ending.reason.code) for each in planned.asked] == [(Release, "moved")]
    killed = OperatorHold(Word.KILL, hold.of_slot(RUNS.slot), NOW, "ops")
    ended = plan.plan(msgspec.structs.replace(moved(), holds=(killed,)), strategies(), builders.NO_LIMITS)
    assert ended.asked == ()
    assert {each.lease.lease_id for each in ended.decisions if isinstance(each, Release)} == {"vast-1", "vast-2"}
    capped = plan.plan(moved(), strategies(), replace(builders.NO_LIMITS, per_hour=builders.per_hour("0.0001")))
    assert capped.asked == ()
    assert not [each for each in capped.decisions if isinstance(each, Hold) and each.reason.code == "last_checkpoint"]
