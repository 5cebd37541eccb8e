"""A guard that reports nothing while its bucket answers is reported to a person, and nothing else follows."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from agent.decide.facts import Alert
from agent.decide.reconcile import reconcile
from agent.decide.reconcile.guards import guard_silence
from agent.decide.reconcile.pass_memory import Memory
from agent.domain.fleet import Fleet
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardReport
from agent.domain.work.ready_sign import Sighting
from tests.support import builders

NOW = builders.NOW
LATE = guard_silence.SILENT_AFTER
RUNS = builders.lease(guard_run=1)


def fleet(silence: timedelta, held: Lease = RUNS, read_ago: timedelta = timedelta(), **changes: object) -> Fleet:
    read_at = NOW - read_ago
    report = GuardReport(read_at, beat_seen_at=read_at - silence)
    view = builders.view(instances=(builders.instance(),), **changes)
    told = {held.intent_id: report}
    return builders.fleet(markets={"vast": view}, workloads=(builders.guarded(),), leases=(held,), guard_reports=told)


def sentences(made: Fleet) -> list[str]:
    return [alert.sentence for alert in guard_silence.alerts(made)]


def test_it_is_told_from_a_quarter_of_an_hour_on() -> None:
    assert sentences(fleet(LATE - timedelta(seconds=1))) == []
    (sentence,) = sentences(fleet(LATE))
    assert "the guard of train/0 on host h1 has said nothing for 15 min" in sentence
    assert "`gpubid logs train/0`" in sentence


def test_a_bucket_that_does_not_answer_makes_no_guard_silent() -> None:
    assert sentences(fleet(timedelta(minutes=2), read_ago=timedelta(hours=3))) == []


def test_silence_from_before_the_present_run_does_not_count() -> None:
    again = replace(RUNS, run_since=NOW - LATE + timedelta(seconds=1))
    assert sentences(fleet(timedelta(hours=3), again)) == []
    assert sentences(fleet(timedelta(hours=3), replace(again, run_since=NOW - LATE)))


@pytest.mark.parametrize(
    "held",
    [replace(RUNS, guard_run=None), *(replace(RUNS, state=each) for each in LeaseState if each is not RUNS.state)],
    ids=lambda held: f"{held.state.value} {held.guard_run}",
)
def test_nothing_is_told_where_no_guard_should_speak(held: Lease) -> None:
    assert sentences(fleet(timedelta(hours=3), held)) == []


def test_work_without_its_guard_is_told_as_such() -> None:
    sighting = Sighting(RUNS.instance_id, NOW, is_ready=False, is_bare=True)
    (sentence,) = sentences(fleet(LATE, sightings={RUNS.instance_id: sighting}))
    assert "train/0 runs without its guard, as its log says" in sentence


def test_a_cycle_tells_it_and_changes_nothing() -> None:
    silent, speaking = (reconcile.reconcile(fleet(span), Memory()).facts for span in (LATE, timedelta()))
    (told,) = set(silent) - set(speaking)
    assert isinstance(told, Alert)
    assert (told.kind, told.key) == (EventKind.ALERT_GUARD_SILENT, RUNS.lease_id)
