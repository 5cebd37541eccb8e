"""Idle GPUs by what the market shows, and by what the guard inside reports."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from agent.decide.reconcile.probes import idleness
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardBeat, GuardReport
from agent.domain.work.idle_rule import IdleRule, OnIdle
from agent.domain.work.workload import Checkpoint, CheckpointPlace
from tests.support import builders
from tests.support.builders import NOW, ago

RUNS = builders.lease(run_since=ago(hours=4), has_run=True, runs=1, guard_run=1)


def report(use: float | None, phase: str = "running", **changes: object) -> GuardReport:
    beat = GuardBeat(1, 7, RUNS.intent_id, phase, gpu_use=use)  # type: ignore[arg-type]
    return replace(GuardReport(NOW, beat, ago(minutes=1)), **changes)  # type: ignore[arg-type]


def judged(market: float | None, told: GuardReport | None, lease: Lease = RUNS) -> tuple[Lease, EventKind | None]:
    row = builders.instance(gpu_util=market)
    reports = {} if told is None else {lease.intent_id: told}
    fleet = builders.fleet(
        leases=(lease,), workloads=(builders.guarded(),), markets={"vast": builders.view(instances=(row,))},
        guard_reports=reports,
    )  # fmt: skip
    return idleness.judged(fleet, fleet.workloads[0], lease, row, NOW)


@pytest.mark.parametrize(
    ("market", "guard", "is_idle"),
    [
        (None, 0.0, True),
        (None, 97.0, False),
        (97.0, 0.0, True),
        (0.0, 97.0, True),
        (97.0, 97.0, False),
        (97.0, None, False),
        (0.0, None, True),
    ],
)
def test_each_of_the_two_is_believed_if_it_shows_them_idle(
    market: float | None, guard: float | None, is_idle: bool
) -> None:
    assert judged(market, report(guard))[0].idle_since == (NOW if is_idle else None)


@pytest.mark.parametrize(
    "told",
    [
        report(0.0, "restoring"),
        report(0.0, "ending"),
        report(0.0, beat_changed_at=None),
        report(0.0, beat_changed_at=ago(minutes=9)),
        report(0.0, beat_changed_at=ago(hours=5)),
        report(0.0, "failed"),
    ],
    ids=["restores", "ends", "first reading", "silent", "of the stretch before", "ended"],
)
def test_a_guard_that_is_silent_or_whose_work_has_not_begun_shows_nothing(told: GuardReport) -> None:
    assert judged(97.0, told) == (RUNS, None)
    assert judged(None, told) == (RUNS, None)


def test_idleness_ends_when_whoever_showed_it_falls_silent() -> None:
    """Work that nobody saw idle was paused, or released, fifteen minutes after one listing had shown no use."""
    idle = msgspec.structs.replace(RUNS, idle_since=ago(minutes=20))
    assert judged(None, report(0.0), idle)[0] == idle
    assert judged(None, None, idle) == (RUNS, None)
    unguarded = msgspec.structs.replace(idle, guard_run=None)
    assert judged(None, None, unguarded) == (msgspec.structs.replace(unguarded, idle_since=None), None)


def test_work_in_both_figures_ends_a_reported_idleness() -> None:
    idle = msgspec.structs.replace(RUNS, idle_since=ago(minutes=20))
    assert judged(97.0, report(97.0), idle) == (RUNS, EventKind.LEASE_BUSY)


@pytest.mark.parametrize(
    ("other", "is_held"),
    [
        (None, True),
        ({}, False),
        ({"idle_since": ago(minutes=2)}, True),
        ({"state": LeaseState.STARTING, "run_since": None}, True),
    ],
    ids=["alone", "the new one works", "the new one idles too", "the new one loads"],
)
def test_a_slot_is_not_held_for_a_lease_that_it_has_moved_away_from(
    other: dict[str, Any] | None, *, is_held: bool
) -> None:
    """The old one could not be released, since its label was edited: the new one was, while it worked."""
    rule = IdleRule(then=OnIdle.RELEASE, lasts=timedelta(minutes=30))
    idle = msgspec.structs.replace(RUNS, idle_since=ago(hours=1))
    new = () if other is None else (builders.lease(2, slot=RUNS.slot, has_run=True, **other),)
    view = builders.view(instances=(builders.instance(1), builders.instance(2)))
    for place, may_leave in ((CheckpointPlace.REMOTE, True), (CheckpointPlace.DISK, False)):
        work = builders.workload(idle=rule, checkpoint=Checkpoint(place=place))
        fleet = builders.fleet(leases=(idle, *new), workloads=(work,), markets={"vast": view})
        assert bool(list(idleness.held(fleet, {}))) is (is_held or not may_leave)
