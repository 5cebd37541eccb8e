"""The runs of slots that begin, and the runs that a renamed workload keeps."""

from dataclasses import replace
from datetime import timedelta

from agent.decide.operators import guard_runs, reload
from agent.domain.record.event_kind import EventKind
from agent.domain.record.guard_run import GuardRun
from agent.domain.work.guard_terms import GuardTerms
from tests.support import builders

NOW = builders.NOW
LATER = NOW + timedelta(hours=1)
WORK = builders.guarded(slots=2)
FIRST = tuple(GuardRun(place, 1, "train", reload.spec_digest(WORK), NOW) for place in WORK.places)


def test_each_slot_of_a_guard_with_a_bucket_begins_its_first_run_once() -> None:
    unkept = builders.workload("eval", guard=GuardTerms(("/w",)))
    works = (WORK, unkept, builders.workload("other"))
    assert guard_runs.due((), works, NOW) == FIRST
    assert guard_runs.due(FIRST, works, LATER) == ()
    assert [run.slot for run in guard_runs.due(FIRST[:1], works, LATER)] == [WORK.places[1]]
    assert FIRST[1].folder("c0ffee") == "c0ffee/train/1/1"


def test_a_store_of_rclone_has_runs_too() -> None:
    work = replace(WORK, guard=GuardTerms(("/w",), rclone="nas:runs"))
    assert guard_runs.due((), (work,), NOW) == FIRST


def test_another_spec_begins_the_next_run_and_the_old_one_is_never_taken_up_again() -> None:
    changed = replace(WORK, image="ubuntu:24.04")
    second = guard_runs.due(FIRST, (changed,), LATER)
    assert [(run.slot, run.run, run.begun_at) for run in second] == [(place, 2, LATER) for place in WORK.places]
    assert guard_runs.due((*FIRST, *second), (changed,), LATER) == ()
    third = guard_runs.due((*second, *FIRST), (WORK,), LATER)
    assert [run.run for run in third] == [3, 3]
    assert {run.spec_digest for run in third} == {reload.spec_digest(WORK)}


def test_a_command_or_a_price_begins_no_run() -> None:
    assert guard_runs.due(FIRST, (replace(WORK, command="python other.py"),), LATER) == ()
    assert guard_runs.due(FIRST, (replace(WORK, max_price=builders.per_hour("2.00")),), LATER) == ()


def test_a_renamed_workload_keeps_its_runs_and_their_folders() -> None:
    again = guard_runs.next_run(FIRST[0], LATER)
    known = (*FIRST, again)
    renamed = replace(WORK, name="fit", was="train")
    kept = guard_runs.due(known, (renamed,), LATER)
    assert [(str(run.slot), run.run, run.folder("c0ffee")) for run in kept] == [
        ("fit/0", 1, "c0ffee/train/0/1"),
        ("fit/1", 1, "c0ffee/train/1/1"),
        ("fit/0", 2, "c0ffee/train/0/2"),
    ]
    assert guard_runs.due((*known, *kept), (renamed,), LATER) == ()
    assert guard_runs.next_run(guard_runs.last(kept)[renamed.places[0]], LATER).folder("c0ffee") == "c0ffee/fit/0/3"


def test_a_run_above_the_first_is_told() -> None:
    second = guard_runs.due(FIRST, (replace(WORK, image="ubuntu:24.04"),), LATER)
    told = list(guard_runs.news((*FIRST, *second)))
    assert [(event.kind, event.workload, event.slot, event.at) for event in told] == [
        (EventKind.WORKLOAD_RUN_BEGUN, "train", 0, LATER),
        (EventKind.WORKLOAD_RUN_BEGUN, "train", 1, LATER),
    ]
    assert told[0].reason == "train/0 begins run 2, without the checkpoints of run 1"


def test_a_workload_that_gets_its_old_name_back_takes_over_the_runs_since() -> None:
    there = replace(WORK, name="fit", was="train")
    known = (*FIRST, *guard_runs.due(FIRST, (there,), LATER))
    begun = guard_runs.due(known, (replace(there, image="ubuntu:24.04"),), LATER)
    assert [(str(run.slot), run.run) for run in begun] == [("fit/0", 2), ("fit/1", 2)]
    back = replace(WORK, was="fit", image="ubuntu:24.04")
    kept = guard_runs.due((*known, *begun), (back,), LATER)
    assert [(str(run.slot), run.folder("c0ffee")) for run in kept] == [
        ("train/0", "c0ffee/fit/0/2"),
        ("train/1", "c0ffee/fit/1/2"),
    ]
    assert guard_runs.due((*known, *begun, *kept), (back,), LATER) == ()


def test_another_workload_of_the_old_name_keeps_its_runs() -> None:
    there = replace(WORK, name="fit", was="train")
    own = guard_runs.next_run(FIRST[0], LATER)
    known = (*FIRST, *guard_runs.due(FIRST, (there,), LATER), own)
    assert guard_runs.due(known, (there, WORK), LATER) == ()
