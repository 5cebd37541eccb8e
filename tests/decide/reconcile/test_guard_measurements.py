"""What guards measured, as far as our own clock allows it; and the lost work that follows from it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.decide.accounting import kept_work, meter
from agent.decide.facts import GuardMeasured
from agent.decide.reconcile.guards import guard_measurements
from agent.domain.fleet import Fleet
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardBeat, GuardReport
from tests.support import builders

NOW = builders.NOW
WORK = builders.guarded()
RUNS = builders.lease(guard_run=1, runs=1, run_since=NOW - timedelta(hours=1))
FIRST = "ckpt/00000001-a.json"


def beat(**changes: Any) -> GuardBeat:
    return GuardBeat(**{"version": 1, "sequence": 1, "lease": RUNS.intent_id, "phase": "running", **changes})


def fleet(
    told: GuardBeat | None,
    held: Lease = RUNS,
    known: Mapping[str, GuardFigures] | None = None,
    changed: datetime | None = NOW,
    at: datetime = NOW,
) -> Fleet:
    reports = {held.intent_id: GuardReport(at, told, changed)}
    return builders.fleet(now=at, workloads=(WORK,), leases=(held,), guard_reports=reports, guard_figures=known or {})


def figures(*args: Any, **changes: Any) -> GuardFigures:
    (fact,) = guard_measurements.told(fleet(*args, **changes))
    return fact.after


def test_before_the_first_checkpoint_nothing_of_the_stretch_is_kept() -> None:
    found = figures(beat(progress=3.0))
    assert (found.manifest, found.kept_at, found.progress) == ("", RUNS.run_since, 3.0)


def test_a_checkpoint_is_dated_by_the_reading_that_first_showed_it_less_its_upload() -> None:
    told = beat(manifest=FIRST, upload_lag_seconds=90.0, checkpoint_bytes=10**9, upload_seconds=80.0)
    found = figures(told)
    assert found.kept_at == NOW - timedelta(seconds=90)
    assert (found.checkpoint_bytes, found.upload_seconds) == (10**9, 80.0)
    later = NOW + timedelta(minutes=5)
    again = beat(sequence=6, manifest=FIRST, upload_lag_seconds=90.0, checkpoint_bytes=10**9, upload_seconds=80.0)
    assert not list(guard_measurements.told(fleet(again, known={RUNS.lease_id: found}, at=later, changed=later)))
    second = beat(sequence=7, manifest="ckpt/00000002-a.json", upload_lag_seconds=30.0)
    after = figures(second, known={RUNS.lease_id: found}, at=later, changed=later)
    assert after.kept_at == later - timedelta(seconds=30)
    assert (after.checkpoint_bytes, after.upload_seconds) == (10**9, 80.0)


def test_of_a_checkpoint_that_was_there_at_the_first_reading_nobody_knows_the_age() -> None:
    found = figures(beat(manifest=FIRST, upload_lag_seconds=1.0), changed=None)
    assert (found.manifest, found.kept_at) == (FIRST, None)


def test_a_beat_of_before_a_resume_says_nothing() -> None:
    again = replace(RUNS, runs=2, run_since=NOW - timedelta(minutes=2))
    for changed in (None, NOW - timedelta(minutes=3)):
        assert not list(guard_measurements.told(fleet(beat(manifest=FIRST), again, changed=changed)))
    assert figures(beat(sequence=9), again).kept_at == again.run_since


def test_what_a_paused_lease_wrote_last_is_still_of_its_last_stretch() -> None:
    known = {RUNS.lease_id: figures(beat(), at=NOW - timedelta(minutes=5), changed=NOW - timedelta(minutes=5))}
    stopped = NOW - timedelta(minutes=1)
    paused = builders.lease(state=LeaseState.PAUSED, guard_run=1, runs=1, state_since=stopped)
    last = beat(sequence=2, manifest=FIRST, upload_lag_seconds=0.0)
    assert figures(last, paused, known).kept_at == stopped
    assert not list(guard_measurements.told(fleet(last, paused)))


@given(
    st.fixed_dictionaries(
        {
            name: st.none() | st.floats(min_value=0, max_value=1e9)
            for name in ("checkpoint_took_seconds", "upload_seconds", "upload_lag_seconds", "restore_seconds")
        }
    ),
    st.none() | st.integers(0, 2**53),
    st.none() | st.floats(-1e15, 1e15),
)
def test_nothing_is_believed_that_our_own_clock_or_the_disk_denies(
    told: dict[str, Any], size: int | None, progress: float | None
) -> None:
    found = figures(beat(manifest=FIRST, checkpoint_bytes=size, progress=progress, **told))
    longest = (NOW - RUNS.opened_at).total_seconds()
    for seconds in (found.took_seconds, found.upload_seconds, found.restore_seconds):
        assert seconds is None or 0 <= seconds <= longest
    assert found.checkpoint_bytes is None or found.checkpoint_bytes <= RUNS.disk_gb * 1e9
    assert RUNS.run_since is not None
    assert found.kept_at is not None
    assert RUNS.run_since <= found.kept_at <= NOW


@pytest.mark.parametrize(
    "lie",
    [{"progress": 1e308}, {"progress": math.nan}, {"restore_seconds": -1}, {"upload_seconds": 1e308}, {"sequence": -1}],
)
def test_a_beat_with_an_impossible_number_is_none(lie: dict[str, Any]) -> None:
    raw = {"version": 1, "sequence": 1, "lease": "a", "phase": "running", **lie}
    with pytest.raises(msgspec.MsgspecError):
        msgspec.convert(raw, GuardBeat)


def test_lost_work_is_that_since_the_last_checkpoint_and_not_since_the_interval_of_the_file() -> None:
    known = {RUNS.lease_id: figures(beat(manifest=FIRST, upload_lag_seconds=600.0))}
    seen = fleet(None, known=known)
    kept_at = kept_work.kept_at(seen, RUNS)
    assert kept_at == NOW - timedelta(minutes=10)
    lost = meter.stretch_end(RUNS, NOW, WORK, is_lost=True, kept_at=kept_at)
    restore = WORK.checkpoint.restore.total_seconds()
    assert lost.useful_seconds == 3000 - restore
    assert meter.stretch_end(RUNS, NOW, WORK, is_lost=False, kept_at=kept_at).useful_seconds == 3600 - restore
    resumed = replace(RUNS, runs=2)
    assert kept_work.kept_at(seen, resumed) is None


def test_a_held_lease_and_one_without_a_guard_tell_nothing() -> None:
    for held in (replace(RUNS, guard_run=None), replace(RUNS, is_held=True)):
        assert not list(guard_measurements.told(fleet(beat(), held)))


def test_the_fact_names_what_was_known_before() -> None:
    before = figures(beat())
    (fact,) = guard_measurements.told(fleet(beat(sequence=2, progress=2.0), known={RUNS.lease_id: before}))
    assert isinstance(fact, GuardMeasured)
    assert fact.before == before
