"""The end of a batch by the word of its guard: done, failed, unfinished, or not known yet."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile import workload_end
from agent.decide.reconcile.guards import guard_end
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import Cause
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Workload, WorkloadKind
from tests.support import builders

NOW = builders.NOW
WORK = builders.guarded(kind=WorkloadKind.BATCH)
RUNS = builders.lease(guard_run=1)
ENDED = builders.lease(guard_run=1, state=LeaseState.EXITED, state_since=NOW - timedelta(minutes=5))
BEAT = GuardBeat(version=1, sequence=7, lease=RUNS.intent_id, phase="running")


def end(code: int | None = 0, **changes: object) -> GuardEnd:
    values = {"version": 1, "lease": RUNS.intent_id, "code": code, "done": code == 0, "last_lines": ["epoch 9", "bye"]}
    return GuardEnd(**{**values, **changes})  # type: ignore[arg-type]


def fleet(held: Lease, report: GuardReport | None, work: Workload = WORK, ago: float = 1.0) -> Fleet:
    """Build a fleet in which a report was read so many minutes ago."""
    told = {} if report is None else {held.intent_id: replace(report, read_at=NOW - timedelta(minutes=ago))}
    return builders.fleet(workloads=(work,), leases=(held,), guard_reports=told)


def marked(made: Fleet) -> list[tuple[Word, str]]:
    found = [mark.record for mark in workload_end.marks(made, ())]
    return [(rest.word, rest.ground) for rest in found if isinstance(rest, OperatorHold)]


@pytest.mark.parametrize("held", [RUNS, ENDED], ids=["asleep", "ended"])
def test_a_done_code_ends_the_slot_also_while_the_guard_is_asleep(held: Lease) -> None:
    report = GuardReport(NOW, replace_phase("done"), NOW, end())
    assert marked(fleet(held, report)) == [(Word.DONE, "exit code 0, as its guard reports")]


@pytest.mark.parametrize("state", sorted(set(LeaseState) - {LeaseState.ENDED}, key=str))
def test_a_done_code_is_final_whatever_became_of_the_lease(state: LeaseState) -> None:
    """Otherwise a host that is outbid before its end was read is paid for again, to find that its work is done."""
    is_leaving = state is LeaseState.RELEASING
    told = GuardReport(NOW, replace_phase("done"), NOW, end())
    held = msgspec.structs.replace(RUNS, state=state, state_since=NOW, interrupted_by=Cause.OUTBID)
    words = marked(fleet(held, told, ago=30.0))
    assert words == ([] if is_leaving else [(Word.DONE, "exit code 0, as its guard reports")])


@pytest.mark.parametrize("is_done", [True, False])
def test_an_unexplained_stop_of_finished_work_is_not_held(is_done: bool) -> None:
    made = fleet(
        RUNS, GuardReport(NOW, replace_phase("done" if is_done else "running"), NOW, end() if is_done else None)
    )
    after = msgspec.structs.replace(RUNS, state=LeaseState.PAUSED, state_since=NOW)
    lost = LeaseChanged(RUNS, after, EventKind.LEASE_INTERRUPTED, cause=Cause.EXTERNAL_STOP)
    found = [mark.record for mark in workload_end.marks(made, (lost,))]
    assert [rest.word for rest in found if isinstance(rest, OperatorHold)] == [Word.DONE if is_done else Word.HELD]


def replace_phase(phase: str) -> GuardBeat:
    return GuardBeat(version=1, sequence=8, lease=RUNS.intent_id, phase=phase)  # type: ignore[arg-type]


@pytest.mark.parametrize("told", [end(3, done=True), end(0, done=False), end(0, signal=9), end(None, signal=9)])
def test_no_other_word_is_final(told: GuardEnd) -> None:
    assert all(word is not Word.DONE for word, _ in marked(fleet(ENDED, GuardReport(NOW, BEAT, NOW, told))))
    running = marked(fleet(RUNS, GuardReport(NOW, BEAT, NOW, told)))
    assert [word for word, _ in running] == ([Word.HELD] if told.done else [])


@pytest.mark.parametrize("beat", [None, BEAT], ids=["silent", "beating"])
@pytest.mark.parametrize("held", [RUNS, ENDED], ids=["asleep", "ended"])
@pytest.mark.parametrize("lease", [RUNS.intent_id, "another"])
def test_an_end_that_only_the_guard_calls_done_holds_the_slot(held: Lease, beat: GuardBeat | None, lease: str) -> None:
    report = GuardReport(NOW, beat, NOW, end(3, done=True, lease=lease))
    why = "its guard calls exit code 3 done, which is not among its done_codes"
    assert marked(fleet(held, report)) == [(Word.HELD, why)]


@pytest.mark.parametrize("state", [LeaseState.STARTING, LeaseState.RUNNING])
def test_a_failure_before_a_resume_does_not_hold_what_runs_again(state: LeaseState) -> None:
    since = NOW - timedelta(minutes=2)
    runs = since if state is LeaseState.RUNNING else None
    again = msgspec.structs.replace(RUNS, state=state, state_since=since, run_since=runs, has_run=True, runs=2)
    for changed in (None, since - timedelta(seconds=1)):
        stale = GuardReport(NOW, replace_phase("failed"), changed, end(3))
        assert marked(fleet(again, stale)) == []
    fresh = GuardReport(NOW, replace_phase("failed"), since, end(3))
    assert marked(fleet(again, fresh)) == [(Word.HELD, "its command ended with exit code 3: bye")]


def test_the_codes_are_the_operators() -> None:
    terms = replace(WORK.guard, done_codes=(3,)) if WORK.guard is not None else None
    report = GuardReport(NOW, BEAT, NOW, end(3, done=True))
    assert marked(fleet(RUNS, report, replace(WORK, guard=terms))) == [(Word.DONE, "exit code 3, as its guard reports")]


def test_another_code_holds_the_slot_with_its_last_line() -> None:
    why = "its command ended with exit code 3: bye"
    assert marked(fleet(ENDED, GuardReport(NOW, BEAT, NOW, end(3)))) == [(Word.HELD, why)]
    restarted = GuardReport(NOW, replace_phase("failed"), NOW, end(3))
    assert marked(fleet(RUNS, restarted)) == [(Word.HELD, why)]


def test_an_end_of_an_earlier_lease_says_nothing_of_this_one() -> None:
    report = GuardReport(NOW, BEAT, NOW, end(3, lease="another"))
    assert guard_end.of(fleet(ENDED, report), ENDED, WORK).word is guard_end.Word.WORKS


def test_a_container_that_ended_without_a_word_is_held_and_never_done() -> None:
    ((word, why),) = marked(fleet(ENDED, GuardReport(NOW, BEAT, NOW)))
    assert word is Word.HELD
    assert "reported no end" in why


@pytest.mark.parametrize("report", [None, GuardReport(NOW, BEAT, NOW, end(3))], ids=["never read", "read before"])
def test_a_bucket_that_is_away_is_waited_for_and_then_holds(report: GuardReport | None) -> None:
    assert workload_end.is_settling(fleet(ENDED, report, ago=6), ENDED)
    assert marked(fleet(ENDED, report, ago=6)) == []
    late = msgspec.structs.replace(ENDED, state_since=NOW - guard_end.PATIENCE)
    ((word, why),) = marked(fleet(late, report, ago=20))
    assert word is Word.HELD
    assert "cannot be read" in why


def test_a_daemon_that_has_just_started_waits_for_its_first_reading() -> None:
    late = msgspec.structs.replace(ENDED, state_since=NOW - timedelta(hours=3))
    made = fleet(late, None)
    assert marked(msgspec.structs.replace(made, started_at=NOW - timedelta(minutes=1))) == []
    # The ten minutes do not begin again with it: one that starts again and again would never judge what bills.
    assert marked(msgspec.structs.replace(made, started_at=NOW - timedelta(minutes=3))) != []


def logged(held: Lease, *, is_bare: bool, ago: timedelta = timedelta()) -> Fleet:
    """Build a fleet in which a guard never spoke, and the log was read so long ago."""
    seen = Sighting(held.instance_id, NOW - ago, is_bare=is_bare)
    row = builders.instance(state=InstanceState.EXITED)
    view = builders.view(instances=(row,), sightings={held.instance_id: seen})
    return msgspec.structs.replace(fleet(held, GuardReport(NOW)), markets={"vast": view})


def test_an_end_without_guard_and_without_the_word_of_the_log_is_held() -> None:
    why = "its container ended, its guard never spoke, and its log does not say that it ran without one"
    assert marked(logged(ENDED, is_bare=False)) == [(Word.HELD, why)]
    assert marked(logged(ENDED, is_bare=True, ago=timedelta(minutes=6))) == [(Word.HELD, why)]
    fresh = msgspec.structs.replace(ENDED, state_since=NOW - timedelta(minutes=2))
    assert marked(logged(fresh, is_bare=True, ago=timedelta(minutes=3))) == []


def test_work_that_ran_bare_ends_as_any_other() -> None:
    assert marked(logged(ENDED, is_bare=True)) == [(Word.DONE, "the end of its container")]
    assert marked(fleet(ENDED, None, builders.workload(kind=WorkloadKind.BATCH))) == [
        (Word.DONE, "the end of its container")
    ]


@pytest.mark.parametrize("held", [RUNS, ENDED], ids=["asleep", "ended"])
@pytest.mark.parametrize("beat", [None, BEAT], ids=["silent", "beating"])
def test_an_end_that_cannot_be_read_is_held_and_no_absence(held: Lease, beat: GuardBeat | None) -> None:
    report = GuardReport(NOW, beat, NOW, None, "end.json")
    why = "its guard left an end that cannot be read, end.json in the bucket"
    assert marked(fleet(held, report)) == [(Word.HELD, why)]
