"""Progress is reported, not guessed: new reports, believed reports, and the speed between two reports."""

import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide import plan
from agent.decide.deadline import progress_facts
from agent.decide.facts import ProgressReported
from agent.decide.limits.limits import Limits
from agent.decide.reconcile.probes import probing
from agent.domain.fleet import Fleet
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.deadline import Deadline, Progress, ProgressSign
from agent.domain.work.decision import Hold, Pause, Release, Rent
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.workload import Checkpoint, Workload
from strategies.deadline import Deadline as Deadlined
from strategies.deadline import DeadlineParams
from tests.support import builders

NOW = builders.NOW
LOG = Deadline(48.0, NOW + timedelta(days=3), sign=ProgressSign.LOG, line="hours done: {hours} of")


def work(**changes: Any) -> Workload:
    return builders.workload(**{"deadline": LOG, **changes})


def known(hours: float, **ago: float) -> Progress:
    return Progress("train", hours, builders.ago(**ago), builders.ago(days=1), "log", "vast-1")


def seen(
    hours: float | None, *leases: Lease, before: Progress | None = None, of: Workload | None = None, at: Any = NOW
) -> Fleet:
    sighting = Sighting("1", at, hours=hours)
    return builders.fleet(
        workloads=(of or work(),),
        leases=leases or (builders.lease(),),
        markets={"vast": builders.view(sightings={"1": sighting})},
        progress={before.workload: before} if before is not None else {},
    )


def only(fleet: Fleet) -> ProgressReported:
    (fact,) = progress_facts.new_progress(fleet)
    return fact


def test_the_first_sight_of_a_deadline_is_written_down() -> None:
    fact = only(seen(None))
    assert (fact.after.hours, fact.after.since, fact.before) == (0.0, NOW, None)


def test_a_workload_without_a_deadline_tells_nothing() -> None:
    assert list(progress_facts.new_progress(seen(3.0, of=builders.workload()))) == []


def test_a_report_is_news_and_measures_the_speed_between_two_of_one_lease() -> None:
    fact = only(seen(2.5, before=known(2.0, minutes=30)))
    assert (fact.after.hours, fact.after.source, fact.after.lease_id) == (2.5, "log", "vast-1")
    assert fact.speed is not None
    assert (fact.speed.hours, fact.speed.running_hours) == (0.5, 0.5)
    assert fact.speed.gpu == builders.RTX_4090


def test_the_same_report_again_is_no_news() -> None:
    assert list(progress_facts.new_progress(seen(2.0, before=known(2.0, minutes=30)))) == []
    assert list(progress_facts.new_progress(seen(2.5, before=known(2.0), at=builders.ago(minutes=1)))) == []


@pytest.mark.parametrize(
    ("hours", "before", "held"),
    [
        (1.5, known(2.0, minutes=30), {}),
        (2.5, known(2.0, minutes=120), {}),
        (2.5, known(2.0, seconds=30), {}),
        (2.5, Progress("train", 2.0, builders.ago(minutes=30), NOW, "order"), {}),
    ],
    ids=["went back", "was down between", "too close", "a person said the last"],
)
def test_what_measures_no_speed(hours: float, before: Progress, held: dict[str, Any]) -> None:
    fact = only(seen(hours, builders.lease(**held), before=before))
    assert fact.after.hours == hours
    assert fact.speed is None


@pytest.mark.parametrize("hours", [-1.0, float("nan"), float("inf"), 2e6])
def test_what_is_no_number_of_hours_is_not_believed(hours: float) -> None:
    assert list(progress_facts.new_progress(seen(hours, before=known(2.0, minutes=30)))) == []


def test_a_renamed_workload_keeps_what_was_told_of_it() -> None:
    fact = only(seen(None, of=work(name="new", was="train"), before=known(7.0, minutes=5)))
    assert (fact.after.workload, fact.after.hours) == ("new", 7.0)
    assert fact.after.since == builders.ago(days=1)


def test_while_a_slot_moves_the_lease_that_works_is_the_one_that_tells() -> None:
    old = builders.lease(1, opened_at=builders.ago(hours=2))
    new = builders.lease(2, opened_at=builders.ago(minutes=5))
    fact = only(seen(2.5, old, new, before=known(2.0, minutes=30)))
    assert fact.after.lease_id == "vast-1"


def test_a_log_is_read_for_progress_although_nothing_else_is_asked() -> None:
    (target,) = probing.targets(seen(None), "vast")
    assert target.needs_log
    assert probing.targets(seen(None, of=builders.workload()), "vast") == ()
    assert probing.targets(seen(None, builders.lease(state=LeaseState.PAUSED)), "vast") == ()


@pytest.mark.parametrize(
    ("line", "hours"),
    [
        ("12:01 hours done: 3.25 of 48", 3.25),
        ("hours done:7 of 48", 7.0),
        ("hours done: 3.2.1 of 48", None),
        ("hours done: -3 of 48", None),
        ("hours done: 3.25", None),
        ("hours done: of 48", None),
        ("hours done: 12345678901 of 48", None),
    ],
)
def test_a_line_tells_hours_or_nothing(line: str, hours: float | None) -> None:
    assert LOG.hours_in(line) == hours


@given(st.text(max_size=400), st.text(max_size=40))
def test_no_log_and_no_line_upsets_it(log: str, text: str) -> None:
    told = Deadline(1.0, NOW, sign=ProgressSign.LOG, line=f"x{text}{{hours}}").hours_in(log)
    assert told is None or (math.isfinite(told) and told >= 0)


INTERVAL = Checkpoint().interval / timedelta(hours=1)
GUARDED = Deadline(48.0, NOW + timedelta(days=3), sign=ProgressSign.GUARD, total=1000.0)


def guarded(progress: float | None, before: Progress, stretch: int = 1, **changes: Any) -> list[ProgressReported]:
    """Return what follows from a guard's number that was read now."""
    of = builders.guarded(deadline=GUARDED)
    held = builders.lease(guard_run=1, runs=1, **changes)
    figures = GuardFigures(held.lease_id, held.slot, "vast", "h1", 1, stretch, NOW, progress)
    known = {before.workload: before}
    made = builders.fleet(workloads=(of,), leases=(held,), guard_figures={held.lease_id: figures}, progress=known)
    return list(progress_facts.new_progress(made))


def test_a_guards_number_counts_up_to_the_total_of_the_file_and_measures_no_speed() -> None:
    (fact,) = guarded(250.0, known(2.0, minutes=30))
    assert (fact.after.hours, fact.after.source, fact.after.told_at, fact.speed) == (12.0, "guard", NOW, None)
    assert guarded(None, known(2.0, minutes=30)) == []
    assert guarded(250.0, known(2.0, minutes=0)) == []
    assert guarded(250.0, known(2.0, minutes=30), stretch=0) == []


@given(st.floats(-1e15, 1e15))
def test_no_number_of_a_guard_says_that_the_work_is_done_or_less_than_not_begun(number: float) -> None:
    for fact in guarded(number, known(2.0, minutes=30)):
        assert 0.0 <= fact.after.hours <= 0.99 * GUARDED.hours


def told(number: float, **ago: float) -> Progress:
    """Return an earlier report of a guard."""
    hours = GUARDED.hours_of(number)
    return Progress("train", hours, builders.ago(**ago), builders.ago(days=1), "guard", "vast-1", number)


@given(st.floats(-1e15, 249.0))
def test_within_a_stretch_a_lower_number_is_not_believed(number: float) -> None:
    assert guarded(number, told(250.0, minutes=30), run_since=builders.ago(hours=2)) == []


@given(st.floats(300.0, 1e15))
def test_a_number_rises_by_no_more_than_four_times_what_is_possible(number: float) -> None:
    (fact,) = guarded(number, told(250.0, minutes=15), run_since=builders.ago(hours=2))
    assert fact.after.hours == min(13.0, GUARDED.hours_of(number))
    assert fact.after.number == GUARDED.number_of(fact.after.hours)


def test_how_far_a_first_report_is_believed_goes_by_when_its_lease_was_opened() -> None:
    begun = Progress("train", 0.0, builders.ago(hours=1), builders.ago(hours=1), "start")
    (lie,) = guarded(990.0, begun, opened_at=builders.ago(minutes=50))
    assert lie.after.hours == 4.0
    (older,) = guarded(990.0, begun, opened_at=builders.ago(hours=90))
    assert older.after.hours == GUARDED.hours_of(990.0)
    (person,) = guarded(10.0, replace(begun, hours=20.0, source="order"))
    assert person.after.hours == GUARDED.hours_of(10.0)


def test_a_file_that_names_another_total_changes_what_the_last_number_stands_for() -> None:
    before = replace(told(250.0, minutes=30), hours=24.0)
    (fact,) = guarded(251.0, before, run_since=builders.ago(hours=2))
    assert fact.after.hours == pytest.approx(GUARDED.hours_of(251.0))


@pytest.mark.parametrize(
    ("number", "hours"), [(240.0, 240.0), (200.0, 200.0), (0.0, 250.0 - 1000 / 48 * 4 * (2 * 0.25 + 1))], ids=str
)
def test_after_a_loss_it_falls_by_what_may_be_lost(number: float, hours: float) -> None:
    before = told(250.0, minutes=30)
    earlier = GuardFigures("vast-1", builders.TRAIN_0, "vast", "h1", 1, 1, before.told_at, 250.0)
    held = builders.lease(2, guard_run=1, runs=1)
    figures = GuardFigures(held.lease_id, held.slot, "vast", "h2", 1, 1, NOW, number)

    def believed(**changes: Any) -> float:
        past = replace(earlier, kept_at=before.told_at - timedelta(hours=1), manifest="x")
        known = {"vast-1": replace(past, **changes), held.lease_id: figures}
        of = builders.guarded(deadline=GUARDED, checkpoint=Checkpoint(interval=timedelta(minutes=15)))
        made = builders.fleet(workloads=(of,), leases=(held,), guard_figures=known, progress={"train": before})
        (fact,) = progress_facts.new_progress(made)
        return fact.after.hours

    assert believed() == pytest.approx(GUARDED.hours_of(hours))
    # A new run begins with nothing, and an age that nobody knows bounds nothing.
    assert believed(run=0) == believed(kept_at=None) == GUARDED.hours_of(number)


def test_after_a_resume_it_falls_by_what_the_stretch_before_did_at_most() -> None:
    since: dict[str, Any] = {"run_since": builders.ago(minutes=5), "opened_at": builders.ago(hours=3)}
    (fact,) = guarded(0.0, told(900.0, minutes=60), **since)
    # It ran for two hours before the last report, and may have lost two intervals more.
    assert fact.after.hours == pytest.approx(GUARDED.hours_of(900.0) - 4.0 * (2.0 + 2 * INTERVAL))
    assert guarded(895.0, told(900.0, minutes=60), **since)[0].after.hours == GUARDED.hours_of(895.0)


@pytest.mark.parametrize("held", [True, False])
def test_a_guard_that_lies_that_all_is_done_stops_no_work(held: bool) -> None:
    (fact,) = guarded(1e15, known(2.0, minutes=30))
    soon = GUARDED if held else replace(GUARDED, by=NOW + timedelta(minutes=40))
    of = builders.guarded(deadline=soon, strategy="deadline")
    made = builders.fleet(
        workloads=(of,),
        leases=(builders.lease(guard_run=1, runs=1),) if held else (),
        progress={"train": fact.after},
        markets={"vast": builders.view(offers=[builders.offer(7)])},
    )
    tuned = {"deadline": builders.tuned(Deadlined(), DeadlineParams())}
    decisions = plan.plan(made, tuned, Limits()).decisions
    assert not [each for each in decisions if isinstance(each, Release | Pause)]
    assert [type(each) for each in decisions] == ([Hold] if held else [Rent])


def test_a_guard_that_lies_that_nothing_is_done_costs_no_more_than_one_that_says_nothing() -> None:
    of = builders.guarded(deadline=GUARDED, strategy="deadline")
    silent = Progress("train", 0.0, builders.ago(hours=3), builders.ago(hours=3), "start")
    lied = Progress("train", GUARDED.hours_of(-1e15), NOW, silent.since, "guard", "vast-1")
    tuned = {"deadline": builders.tuned(Deadlined(), DeadlineParams())}
    markets = {"vast": builders.view(offers=[builders.offer(number) for number in range(4)])}
    plans = [
        plan.plan(builders.fleet(workloads=(of,), progress={"train": told}, markets=markets), tuned, Limits())
        for told in (silent, lied)
    ]
    assert plans[0].decisions == plans[1].decisions
