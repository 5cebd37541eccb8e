"""A start without its guard: another host, no blame, and after two of them a person."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide import slot_releases
from agent.decide.facts import LeaseChanged
from agent.decide.moves import cooldowns_after_writes
from agent.decide.reconcile import reconcile, workload_end
from agent.decide.reconcile.guards import guard_refusal
from agent.decide.reconcile.pass_memory import Memory
from agent.decide.reconcile.probes import log_failures, probing
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.event_kind import EventKind
from agent.domain.record.hold import OperatorHold, Word
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Release
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Checkpoint, CheckpointPlace, WorkloadKind
from tests.support import builders

NOW = builders.NOW
WHY = "the guard could not be fetched from the bucket"
LINE = f"gpubid-guard: cannot start: {WHY}"
WORK = builders.guarded(kind=WorkloadKind.BATCH)
ENDED = builders.lease(
    guard_run=1, state=LeaseState.EXITED, state_since=NOW - timedelta(minutes=3), run_since=NOW - timedelta(minutes=14),
    has_run=True, runs=1,
)  # fmt: skip
BEAT = GuardBeat(version=1, sequence=1, lease=ENDED.intent_id, phase="running")


def fleet(held: Lease = ENDED, refusal: str = WHY, **changes: Any) -> Fleet:
    state = InstanceState.EXITED if held.state is LeaseState.EXITED else InstanceState.RUNNING
    seen = Sighting(held.instance_id, NOW, failure=LINE if refusal else "", refusal=refusal)
    view = builders.view(instances=(builders.instance(state=state),), sightings={held.instance_id: seen})
    return builders.fleet(**{"workloads": (WORK,), "leases": (held,), "markets": {"vast": view}, **changes})


def changes(made: Fleet) -> list[LeaseChanged]:
    facts = reconcile.reconcile(made, Memory()).facts
    return [fact for fact in facts if isinstance(fact, LeaseChanged) and fact.kind is not None]


@pytest.mark.parametrize(
    "held", [ENDED, msgspec.structs.replace(ENDED, state=LeaseState.RUNNING)], ids=["ended", "started again"]
)
def test_it_fails_without_blame_and_another_host_is_tried(held: Lease) -> None:
    (change,) = changes(fleet(held))
    assert (change.kind, change.after.has_failed) == (EventKind.LEASE_NOT_READY, True)
    assert change.after.end_reason == f"guard_refused: {WHY}"
    assert change.cooldown is None
    (release,) = slot_releases.releases(fleet(change.after))
    assert isinstance(release, Release)
    assert release.reason.code == guard_refusal.GUARD_REFUSED
    assert release.reason.code not in cooldowns_after_writes.FAILED_STARTS
    (rest,) = cooldowns_after_writes.after_release(release, NOW)
    assert isinstance(rest, Cooldown)
    assert rest.key == "vast/h1"


def test_a_guard_that_ever_spoke_and_a_disk_with_work_are_not_given_up() -> None:
    spoke = {ENDED.intent_id: GuardReport(NOW, BEAT, NOW)}
    assert changes(fleet(guard_reports=spoke)) == []
    on_disk = replace(WORK, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    assert changes(fleet(msgspec.structs.replace(ENDED, runs=2), workloads=(on_disk,))) == []
    assert len(changes(fleet(workloads=(on_disk,)))) == 1


def test_a_guard_that_refuses_while_its_bucket_answers_is_believed_and_a_command_that_failed_is_none() -> None:
    failed = msgspec.structs.replace(BEAT, phase="failed")
    refused = {ENDED.intent_id: GuardReport(NOW, failed)}
    (change,) = changes(fleet(guard_reports=refused))
    assert change.after.end_reason == f"guard_refused: {WHY}"
    assert changes(fleet(guard_reports=refused, refusal="")) == []
    end = GuardEnd(version=1, lease=ENDED.intent_id, code=1)
    assert changes(fleet(guard_reports={ENDED.intent_id: GuardReport(NOW, failed, end=end)})) == []
    assert changes(fleet(guard_reports={ENDED.intent_id: GuardReport(NOW, failed, unread_end="end.json")})) == []


def test_what_failed_before_a_resume_refuses_no_later_start() -> None:
    failed = msgspec.structs.replace(BEAT, phase="failed")
    again = msgspec.structs.replace(ENDED, runs=2)
    stale, fresh = NOW - timedelta(minutes=15), NOW - timedelta(minutes=5)
    for changed, count in ((None, 0), (stale, 0), (fresh, 1)):
        assert len(changes(fleet(again, guard_reports={again.intent_id: GuardReport(NOW, failed, changed)}))) == count


def test_an_old_line_and_a_lease_without_a_guard_are_no_refusal() -> None:
    assert changes(fleet(msgspec.structs.replace(ENDED, run_since=None, state_since=NOW + timedelta(seconds=1)))) == []
    assert changes(fleet(refusal="")) == []
    assert changes(fleet(msgspec.structs.replace(ENDED, guard_run=None))) == []


def test_such_a_batch_is_never_taken_for_done() -> None:
    read = {ENDED.intent_id: GuardReport(NOW)}
    facts = reconcile.reconcile(fleet(guard_reports=read), Memory()).facts
    marks = workload_end.marks(fleet(guard_reports=read), facts)
    assert all(getattr(mark.record, "word", None) is not Word.DONE for mark in marks)
    recorded = fleet(msgspec.structs.replace(ENDED, has_failed=True), guard_reports=read)
    assert [mark for mark in workload_end.marks(recorded, ()) if isinstance(mark.record, OperatorHold)] == []
    unread = msgspec.structs.replace(ENDED, runs=2)
    on_disk = replace(WORK, checkpoint=Checkpoint(place=CheckpointPlace.DISK))
    (mark,) = workload_end.marks(fleet(unread, workloads=(on_disk,), guard_reports=read), ())
    assert isinstance(mark.record, OperatorHold)
    assert (mark.record.word, LINE in mark.record.ground) == (Word.HELD, True)


@pytest.mark.parametrize(("earlier", "is_held"), [(0, False), (1, True)])
def test_the_second_one_holds_the_workload(earlier: int, *, is_held: bool) -> None:
    before = [workload_end.failed_start("train", f"vast-{9 + n}", NOW, f"guard_refused: {WHY}") for n in range(earlier)]
    before.append(workload_end.failed_start("train", "vast-8", NOW, "start_failed: no space"))
    made = fleet(tallies=tuple(before))
    marks = workload_end.marks(made, changes(made))
    held = [mark.record for mark in marks if isinstance(mark.record, OperatorHold)]
    assert [str(each.target) for each in held] == (["workload:train"] if is_held else [])
    assert all(each.ground.startswith("2 starts failed although it has a checkpoint") for each in held)


def test_the_log_is_read_while_a_guard_is_silent_and_only_its_last_line_counts() -> None:
    runs = msgspec.structs.replace(ENDED, state=LeaseState.RUNNING)
    spoke = {runs.intent_id: GuardReport(NOW, BEAT)}
    for made, expected in ((fleet(runs), True), (fleet(runs, guard_reports=spoke), False)):
        found = probing.targets(made, "vast")
        assert any(target.is_silent and target.needs_log for target in found) is expected
    assert log_failures.refusal(["x", LINE, "", " "]) == WHY
    assert log_failures.refusal([LINE, "epoch 1"]) == ""
    assert log_failures.refusal([]) == ""
