"""The verdict on work without progress, from the readings of its signs, and the measures that follow."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.probes import stalls
from agent.domain.fleet import Fleet
from agent.domain.market.instance import InstanceState
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.record.tally import Counted, Tally
from agent.domain.slot import Slot
from agent.domain.work.guard_report import GuardBeat, GuardEnd, GuardReport
from agent.domain.work.ready_sign import Sighting
from agent.domain.work.stall import OnStall, ProgressSeen, Quiet, StallRule
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload
from agent.markets.dstack.rules import RULES as DSTACK
from agent.markets.mithril.rules import RULES as MITHRIL
from tests.support import builders
from tests.support.builders import NOW, ago

AFTER = dt.timedelta(minutes=45)
BEGUN = ago(hours=3)
RUNS = builders.lease(run_since=ago(hours=4), has_run=True, runs=1)
MINUTE = dt.timedelta(minutes=1)


def asked(*then: OnStall, place: CheckpointPlace = CheckpointPlace.NONE, **changes: Any) -> Workload:
    rule = StallRule(AFTER, then or tuple(OnStall))
    return builders.workload(stalled=rule, checkpoint=Checkpoint(place=place), slots=2, **changes)


def world(
    lease: Lease = RUNS,
    seen: ProgressSeen | None = None,
    *others: Lease,
    work: Workload | None = None,
    quiet: Mapping[str, Quiet] | None = None,
    taken: int = 0,
    **changes: Any,
) -> Fleet:
    sightings = {lease.instance_id: Sighting(lease.instance_id, NOW, progress=seen)}
    view = builders.view(instances=(builders.instance(),), sightings=sightings)
    until = NOW + dt.timedelta(hours=1)
    counted = (Tally(Counted.STALLED, str(lease.slot), NOW, until, "", count=taken),) if taken else ()
    settings = {"markets": {"vast": view}, "workloads": (work or asked(),), "tallies": counted, "quiet": quiet or {}}
    return builders.fleet(leases=(lease, *others), **{**settings, **changes})


def reading(minutes: float = 0.0, news: float | None = None) -> ProgressSeen:
    return ProgressSeen(BEGUN, ago(minutes=minutes), None if news is None else ago(minutes=news))


def counted(fleet: Fleet, before: Quiet | None) -> Quiet | None:
    key = fleet.leases[0].lease_id
    return stalls.counted(fleet, {} if before is None else {key: before}).get(key)


def quiet(minutes: float = 10.0, read: float = 1.0, **changes: Any) -> Quiet:
    return replace(Quiet(BEGUN, ago(minutes=read), None, minutes * MINUTE), **changes)


def judged(minutes: float, lease: Lease = RUNS, *others: Lease, **changes: Any) -> tuple[Lease, EventKind | None]:
    spans = {lease.lease_id: quiet(minutes)} | changes.pop("spans", {})
    fleet = world(lease, None, *others, quiet=spans, **changes)
    return stalls.judged(fleet, fleet.workloads[0], lease)


def test_at_a_market_without_logs_the_guards_figures_are_the_signs() -> None:
    """A training that hung at full use there billed for ever, since a log that it does not keep was waited for."""
    work = builders.guarded(stalled=StallRule(AFTER, tuple(OnStall)), slots=2)
    lease = msgspec.structs.replace(RUNS, guard_run=1)
    beat = GuardBeat(version=1, sequence=8, lease=lease.intent_id, phase="running", progress=0.4)
    report = GuardReport(NOW, beat, NOW, None, work_changed_at=ago(minutes=50))
    told = [
        (MITHRIL, report, True),
        (None, report, False),
        (MITHRIL, replace(report, beat=None, beat_changed_at=None), False),
        (MITHRIL, replace(report, beat=msgspec.structs.replace(beat, progress=None)), False),
    ]
    for rules, said, is_found in told:
        seen = world(lease, None, work=work, guard_reports={lease.intent_id: said})
        view = seen.markets["vast"] if rules is None else msgspec.structs.replace(seen.markets["vast"], rules=rules)
        seen = msgspec.structs.replace(seen, markets={"vast": view})
        found = counted(seen, Quiet(lease.run_since or NOW, ago(minutes=1), ago(minutes=50), 49 * MINUTE))
        assert found is not None
        assert (found.lasted == 50 * MINUTE) is is_found


# --- the time without progress ----------------------------------------------------------------------------------------
def test_it_is_counted_from_reading_to_reading() -> None:
    assert counted(world(seen=reading()), None) == Quiet(BEGUN, NOW), "nothing is known of the time before"
    assert counted(world(seen=reading()), quiet(10.0, 1.0)) == quiet(11.0, 0.0)
    assert counted(world(seen=reading(1.0)), quiet(10.0, 1.0)) == quiet(10.0, 1.0), "the same reading again"


def test_something_new_ends_it() -> None:
    assert counted(world(seen=reading(0.0, 0.0)), quiet()) == Quiet(BEGUN, NOW, NOW)
    known = quiet(news_at=ago(minutes=30))
    assert counted(world(seen=reading(0.0, 30.0)), known) == replace(known, read_at=NOW, lasted=11 * MINUTE)


def test_a_long_time_between_two_readings_does_not_count() -> None:
    assert counted(world(seen=reading()), quiet(10.0, 5.2)) == quiet(15.2, 0.0)
    assert counted(world(seen=reading()), quiet(10.0, 5.3)) == quiet(10.0, 0.0)


@pytest.mark.parametrize(
    "view",
    [
        builders.view(is_fresh=False, instances=(builders.instance(),)),
        builders.view(instances=()),
        builders.view(instances=(builders.instance(state=InstanceState.PAUSED),)),
    ],
    ids=["not listed", "missing", "shown as paused"],
)
def test_in_the_dark_it_neither_counts_nor_ends(view: Any) -> None:
    sighting = Sighting("1", NOW, progress=reading(0.0, 0.0))
    dark = msgspec.structs.replace(view, sightings={"1": sighting})
    assert counted(world(markets={"vast": dark}), quiet()) == quiet()


def test_a_new_stretch_a_measure_and_a_new_memory_of_the_log_begin_it_anew() -> None:
    for lease in (
        msgspec.structs.replace(RUNS, run_since=ago(minutes=5)),
        msgspec.structs.replace(RUNS, stalled_at=ago(minutes=5)),
    ):
        assert counted(world(lease, reading()), quiet()) == Quiet(ago(minutes=5), NOW)
    later = ProgressSeen(ago(minutes=2), NOW)
    assert counted(world(seen=later), quiet()) == Quiet(ago(minutes=2), NOW)


def test_only_running_useful_work_that_is_asked_about_is_watched() -> None:
    assert stalls.is_watched(asked(), RUNS)
    assert not stalls.is_watched(builders.workload(), RUNS)
    for changes in (
        {"state": LeaseState.PAUSED},
        {"run_since": None},
        {"is_held": True},
        {"has_failed": True},
        {"unhealthy_since": NOW},
    ):
        assert not stalls.is_watched(asked(), msgspec.structs.replace(RUNS, **changes)), changes


# --- the guard --------------------------------------------------------------------------------------------------------
def guarded(report: GuardReport | None, seen: ProgressSeen, before: Quiet) -> Quiet | None:
    lease = msgspec.structs.replace(RUNS, guard_run=1)
    work = builders.guarded(stalled=StallRule(AFTER))
    return counted(world(lease, seen, work=work, guard_reports={lease.intent_id: report} if report else {}), before)


def report(phase: str = "running", **changes: Any) -> GuardReport:
    told = GuardBeat(1, 7, RUNS.intent_id, phase, 5.0)  # type: ignore[arg-type]
    return replace(GuardReport(NOW, told, NOW, beat_seen_at=NOW), **changes)


def test_beats_of_the_guard_are_no_progress_but_its_steps_are() -> None:
    assert guarded(report(), reading(), quiet()) == quiet(11.0, 0.0)
    assert guarded(report(work_changed_at=NOW), reading(), quiet()) == Quiet(BEGUN, NOW, NOW)


def test_a_bucket_that_is_away_makes_nothing_stalled() -> None:
    assert guarded(None, reading(), quiet()) == quiet()
    assert guarded(report(read_at=ago(minutes=9)), reading(), quiet()) == quiet()


def test_a_restore_and_an_end_are_no_stall() -> None:
    assert guarded(report("restoring"), reading(), quiet()) == Quiet(BEGUN, NOW, NOW)
    assert guarded(report("restoring", beat_changed_at=None), reading(), quiet()) == quiet(11.0, 0.0)
    assert guarded(report("failed"), reading(), quiet()) == quiet()
    known = report(end=GuardEnd(1, RUNS.intent_id, 3))
    assert guarded(known, reading(), quiet()) == quiet(11.0, 0.0), "an end before this start"


# --- the measures -----------------------------------------------------------------------------------------------------
def test_before_its_time_nothing_is_done() -> None:
    assert judged(44.9) == (RUNS, None)


def test_the_first_measure_warns_and_dates_the_stall_without_the_dark() -> None:
    after, kind = judged(45.0)
    assert kind is EventKind.LEASE_STALLED
    assert (after.stalled_since, after.stalled_at, after.restart_at) == (NOW - AFTER, NOW, None)
    told = f"stalled: its work shows no progress since {NOW - AFTER:%H:%M} UTC at {RUNS.billing_rate}"
    assert (
        after.end_reason
        == f"{told}; only a warning is given, and after another 45 min of this it is restarted in place"
    )


def test_a_restart_a_move_and_a_hold_follow_on_any_lease_of_the_slot() -> None:
    restarted, _ = judged(45.0, taken=1)
    assert (restarted.restarts, restarted.restart_at, restarted.has_failed) == (1, NOW, False)
    moved, _ = judged(45.0, taken=2)
    assert (moved.has_failed, moved.restart_at) == (True, None)
    held, _ = judged(45.0, taken=3)
    assert (held.has_failed, held.restart_at, held.stalled_at) == (False, None, NOW)
    assert held.end_reason.endswith("; its slot is held")


def test_after_the_last_measure_only_the_first_sight_on_a_lease_is_told() -> None:
    told, kind = judged(45.0, taken=4)
    assert (told.stalled_at, kind) == (NOW, EventKind.LEASE_STALLED)
    assert judged(90.0, msgspec.structs.replace(RUNS, stalled_since=BEGUN, stalled_at=ago(hours=1)), taken=4)[1] is None


def test_the_host_is_blamed_only_while_others_of_the_workload_make_progress() -> None:
    beside = msgspec.structs.replace(RUNS, lease_id="other", instance_id="77", slot=Slot(RUNS.slot.workload, 1))
    busy = {"other": quiet(2.0, news_at=ago(minutes=2))}
    for spans, code in (
        ({}, "stalled: "),
        (busy, "stalled_host: "),
        ({"other": quiet(50.0, news_at=NOW)}, "stalled: "),
    ):
        assert judged(45.0, RUNS, beside, taken=2, spans=spans)[0].end_reason.startswith(code)
    unknown = {"other": quiet(2.0)}
    assert judged(45.0, RUNS, beside, taken=2, spans=unknown)[0].end_reason.startswith("stalled: ")


def test_a_disk_with_the_only_copy_is_held_instead_of_moved() -> None:
    work = asked(OnStall.MOVE, place=CheckpointPlace.DISK)
    after, _ = judged(45.0, work=work)
    assert not after.has_failed
    fleet = world(work=work)
    [(_, why)] = stalls.held(fleet, [LeaseChanged(RUNS, after, EventKind.LEASE_STALLED)])
    fix = "its disk may hold the only copy of work: copy it before `gpubid release train/0`"
    assert why == f"its work shows no progress since {NOW - AFTER:%H:%M} UTC at {RUNS.billing_rate}; {fix}"


def test_where_nothing_can_be_paused_a_move_takes_the_place_of_the_restart() -> None:
    lease = msgspec.structs.replace(RUNS, market="dstack")
    there = {"dstack": builders.view(market="dstack", rules=DSTACK)}
    warned, _ = judged(45.0, lease, markets=there)
    assert warned.end_reason.endswith("and after another 45 min of this another host is tried")
    moved, _ = judged(45.0, lease, markets=there, taken=1)
    assert (moved.has_failed, moved.restarts, moved.restart_at) == (True, 0, None)
    kept, _ = judged(45.0, lease, markets=there, taken=1, work=asked(place=CheckpointPlace.DISK))
    assert (kept.has_failed, kept.restart_at, kept.end_reason[-16:]) == (False, None, "its slot is held")


def test_each_measure_is_counted_once_for_its_slot() -> None:
    after, _ = judged(45.0, taken=1)
    change = LeaseChanged(RUNS, after, EventKind.LEASE_STALLED)
    [(_, tally)] = stalls.tallies(world(taken=1), [change])
    assert (tally.of, tally.count, tally.until) == ("train/0", 2, NOW + stalls.FORGIVEN_AFTER)
    assert not list(stalls.tallies(world(taken=2), [LeaseChanged(after, after, None)]))
    assert not list(stalls.tallies(world(taken=4), [change])), "no measure is left"


def test_progress_ends_a_stall_and_a_restarted_daemon_does_not_believe_in_one() -> None:
    ill = msgspec.structs.replace(RUNS, stalled_since=BEGUN, stalled_at=ago(minutes=5), end_reason="stalled: its work")
    spans = {ill.lease_id: quiet(0.0, news_at=NOW)}
    assert judged(0.0, ill, spans=spans) == (RUNS, EventKind.LEASE_PROGRESSED)
    assert judged(0.0, ill) == (ill, None)


def test_what_is_no_longer_asked_is_no_longer_stalled() -> None:
    ill = msgspec.structs.replace(RUNS, stalled_since=BEGUN, stalled_at=BEGUN, end_reason="stalled: its work")
    assert stalls.judged(world(ill), builders.workload(), ill) == (RUNS, None)


def test_an_alert_lasts_while_it_bills() -> None:
    ill = msgspec.structs.replace(RUNS, stalled_since=NOW, stalled_at=NOW)
    [alert] = stalls.alerts(world(ill))
    told = (
        f"train/0 on host {ill.host_id} bills {ill.billing_rate}, but its work shows no progress since {NOW:%H:%M} UTC"
    )
    assert alert.sentence == f"{told}; see `gpubid logs train/0`"
    assert not list(stalls.alerts(world(msgspec.structs.replace(ill, state=LeaseState.PAUSED))))
