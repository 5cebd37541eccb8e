"""What guards measured, as far as our own clock allows it; and the lost work that follows from it."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent.decide.accounting import kept_work, meter
from agent.decide.facts import GuardMeasured, LeaseChanged
from agent.decide.reconcile.guards import guard_measurements
from agent.domain.fleet import Fleet
from agent.domain.market import market_notice
from agent.domain.market.interruption import Cause, Loss
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardBeat, GuardNotice, GuardReport
from agent.web.reading import learned_json
from tests.support import builders, listings

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
    (fact,) = guard_measurements.new_measurements(fleet(*args, **changes))
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
    assert not list(
        guard_measurements.new_measurements(fleet(again, known={RUNS.lease_id: found}, at=later, changed=later))
    )
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
        assert not list(guard_measurements.new_measurements(fleet(beat(manifest=FIRST), again, changed=changed)))
    assert figures(beat(sequence=9), again).kept_at == again.run_since


@pytest.mark.parametrize("is_stopped", [False, True])
def test_what_was_not_listed_once_keeps_its_stretch_and_the_age_of_its_checkpoint(*, is_stopped: bool) -> None:
    taken, back = NOW - timedelta(minutes=50), NOW + listings.POLL
    known = figures(beat(manifest=FIRST, upload_lag_seconds=3000.0, progress=1.0))
    assert known.kept_at == taken
    gone = replace(RUNS, state=LeaseState.MISSING, state_since=NOW)
    stops = [("outbid", 5), ("resumed", 10)] if is_stopped else []
    events = tuple(builders.event(kind, event_id=kind, at=NOW + timedelta(seconds=seconds)) for kind, seconds in stops)
    result = listings.seen(gone, listings.ROW, at=1, events=events)
    after = [fact.after for fact in result.facts if isinstance(fact, LeaseChanged)][-1]
    assert (after.state, after.runs) == (LeaseState.RUNNING, 2 if is_stopped else 1)
    again = beat(sequence=2, manifest=FIRST, upload_lag_seconds=5.0, progress=2.0)
    found = figures(again, after, {RUNS.lease_id: known}, at=back, changed=back)
    assert (found.kept_at == taken) is not is_stopped
    assert kept_work.kept_at(fleet(None, known={RUNS.lease_id: found}), after) == found.kept_at
    assert (found.progress, found.stretch) == (2.0, after.runs)


def test_what_a_paused_lease_wrote_last_is_still_of_its_last_stretch() -> None:
    known = {RUNS.lease_id: figures(beat(), at=NOW - timedelta(minutes=5), changed=NOW - timedelta(minutes=5))}
    stopped = NOW - timedelta(minutes=1)
    paused = builders.lease(state=LeaseState.PAUSED, guard_run=1, runs=1, state_since=stopped)
    last = beat(sequence=2, manifest=FIRST, upload_lag_seconds=0.0)
    assert figures(last, paused, known).kept_at == stopped
    assert not list(guard_measurements.new_measurements(fleet(last, paused)))


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
        assert not list(guard_measurements.new_measurements(fleet(beat(), held)))


def test_the_fact_names_what_was_known_before() -> None:
    before = figures(beat())
    (fact,) = guard_measurements.new_measurements(fleet(beat(sequence=2, progress=2.0), known={RUNS.lease_id: before}))
    assert isinstance(fact, GuardMeasured)
    assert fact.before == before


LOST_AT = NOW - timedelta(minutes=20)
SIGTERM = GuardNotice(sigterm_seen=True, seconds=9.5)


def noticed(beat_: GuardBeat, cause: Cause | None = Cause.OUTBID, stretch: int = 1, **known: Any) -> NoticeGiven | None:
    """Return the notice that follows from a beat after a lease came back from a loss."""
    again = replace(RUNS, runs=2, run_since=NOW - timedelta(minutes=2), state_since=NOW - timedelta(minutes=2))
    figures_ = GuardFigures(again.lease_id, again.slot, "vast", again.host_id, 1, stretch, LOST_AT, **known)
    losses = () if cause is None else (Loss(LOST_AT, again.slot, "vast", again.host_id, cause),)
    made = msgspec.structs.replace(fleet(beat_, again, {again.lease_id: figures_}), losses=losses)
    facts = list(guard_measurements.new_measurements(made))
    assert len(facts) <= 1
    return facts[0].notice if facts else None


@pytest.mark.parametrize("told", [SIGTERM, GuardNotice(sigterm_seen=False, seconds=0.0)])
def test_a_notice_belongs_to_the_loss_before_and_is_told_once(told: GuardNotice) -> None:
    found = noticed(beat(notice=told))
    assert found == NoticeGiven(RUNS.lease_id, LOST_AT, "vast", told.sigterm_seen, told.seconds, NOW)
    assert noticed(beat(notice=told), stretch=2) is None, "this stretch has told its notice"
    assert noticed(beat(notice=told), stretch=0) is None, "nobody heard the guard of the stretch that was lost"


def test_a_stop_that_was_no_act_of_the_market_gives_no_notice() -> None:
    for cause in (None, Cause.HOST_OFFLINE, Cause.EXTERNAL_STOP, Cause.UNKNOWN):
        assert noticed(beat(notice=SIGTERM), cause) is None
    assert noticed(beat(notice=SIGTERM, phase="ending")) is None
    assert noticed(beat()) is None


def test_an_hour_of_notice_is_a_lie() -> None:
    assert noticed(beat(notice=GuardNotice(sigterm_seen=True, seconds=1e9))) is None


def test_until_ten_are_there_nothing_is_said_of_a_market() -> None:
    given_ = [NoticeGiven(f"l{number}", NOW, "vast", number % 2 == 0, float(number), NOW) for number in range(10)]
    unknown = market_notice.of("vast", given_[:9])
    assert (unknown.is_known, unknown.sentence) == (False, "notice before a loss to vast: unknown (9 of 10 measured)")
    known = market_notice.of("vast", given_)
    assert known.sentence == "notice before a loss to vast: SIGTERM in 50% of 10, then 4.0 s (median)"
    assert not market_notice.of("runpod", given_).is_known
    shown = learned_json.notice("vast", given_[:9])
    assert (shown["signalled_share"], shown["seconds"]) == (None, None)
    assert learned_json.notice("vast", given_)["seconds"] == 4.0
