"""Measurements of guards that are not recorded yet.

Invariants:
1. Figures that our own records deny are not believed. No duration is longer than the lease, and no checkpoint larger
   than its disk. None is dated before or after the stretch of running that made it.
2. A host's times are only used as durations. A checkpoint is dated by the reading that first showed it.
3. A beat from before the present stretch of running says nothing about this stretch.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from agent.decide.facts import GuardMeasured
from agent.decide.reconcile.guards import beat_stretch
from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause
from agent.domain.market.market_notice import NoticeGiven
from agent.domain.record.guard_figures import GuardFigures
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.guard_report import GuardBeat, GuardReport

_GIGABYTE = 1_000_000_000
TAKEN = frozenset({Cause.OUTBID, Cause.DISPLACED})
"""Causes of losses to the market."""
ONE_READING = timedelta(minutes=2)
MOST_NOTICE_SECONDS = 3600.0
"""The longest believed notice: no market gives an hour."""


def new_measurements(fleet: Fleet) -> Iterator[GuardMeasured]:
    """Yield the figures of every lease whose guard reports something new."""
    for lease in fleet.leases:
        report = fleet.guard_reports.get(lease.intent_id)
        work = fleet.workload(lease.slot.workload)
        if report is None or report.beat is None or lease.guard_run is None or lease.is_held or work is None:
            continue
        before = fleet.guard_figures.get(lease.lease_id)
        if not _is_of_now(lease, report, before):
            continue
        after = _read(lease, report, report.beat, before)
        if before is None or replace(after, told_at=before.told_at) != before:
            yield GuardMeasured(after, before, _notice(fleet, lease, report.beat, before, report.read_at))


def _notice(
    fleet: Fleet, lease: Lease, beat: GuardBeat, before: GuardFigures | None, now: datetime
) -> NoticeGiven | None:
    """Return the notice before the end of the previous stretch, if that end was a loss to the market.

    Without any report of the previous stretch there is none: we may have ended that stretch ourselves.
    """
    notice = beat.notice
    if (
        notice is None
        or before is None
        or before.stretch != lease.runs - 1
        or beat.phase in {"ending", "done", "failed"}
    ):
        return None
    mine = [loss for loss in fleet.losses if (loss.slot, loss.host) == (lease.slot, lease.host)]
    last = mine[-1] if mine else None
    # A reading of that stretch after this loss shows that the stretch ended later, in another way.
    if last is None or last.cause not in TAKEN or before.told_at > last.at + ONE_READING:
        return None
    if notice.seconds > MOST_NOTICE_SECONDS:
        return None
    return NoticeGiven(lease.lease_id, last.at, lease.market, notice.sigterm_seen, notice.seconds, now)


def _is_of_now(lease: Lease, report: GuardReport, before: GuardFigures | None) -> bool:
    """Return whether the beat is of the last stretch of running."""
    if lease.run_since is not None:
        return beat_stretch.is_present(report, lease)
    # The lease stopped: a changed beat belongs to its last stretch only if that stretch was read before.
    changed = report.beat_changed_at
    return before is not None and before.stretch == lease.runs and changed is not None and changed > before.told_at


def _read(lease: Lease, report: GuardReport, beat: GuardBeat, before: GuardFigures | None) -> GuardFigures:
    longest = max((report.read_at - lease.opened_at).total_seconds(), 0.0)
    known = before if before is not None and before.stretch == lease.runs else None
    manifest = beat.manifest or (known.manifest if known is not None else "")
    return GuardFigures(
        lease_id=lease.lease_id,
        slot=lease.slot,
        market=lease.market,
        host_id=lease.host_id,
        run=lease.guard_run or 0,
        stretch=lease.runs,
        told_at=report.read_at,
        progress=beat.progress,
        manifest=manifest,
        kept_at=_kept_at(lease, report, beat, known, manifest),
        checkpoint_bytes=_size(beat.checkpoint_bytes, lease) or (before.checkpoint_bytes if before else None),
        took_seconds=_first(_span(beat.checkpoint_took_seconds, longest), before.took_seconds if before else None),
        upload_seconds=_first(_span(beat.upload_seconds, longest), before.upload_seconds if before else None),
        restore_seconds=_first(_span(beat.restore_seconds, longest), before.restore_seconds if before else None),
    )


def _kept_at(
    lease: Lease, report: GuardReport, beat: GuardBeat, known: GuardFigures | None, manifest: str
) -> datetime | None:
    if known is not None and known.manifest == manifest:
        return known.kept_at
    if not manifest:
        return lease.run_since
    if report.beat_changed_at is None:
        # This is the daemon's first reading: the age of that checkpoint is unknown.
        return None
    begun = lease.run_since or (known.kept_at if known is not None else None) or lease.opened_at
    lag = min(beat.upload_lag_seconds or 0.0, max((report.read_at - begun).total_seconds(), 0.0))
    ended = report.read_at if lease.state is LeaseState.RUNNING else min(report.read_at, lease.state_since)
    return max(min(report.read_at - timedelta(seconds=lag), ended), begun)


def _span(seconds: float | None, longest: float) -> float | None:
    return seconds if seconds is not None and 0.0 <= seconds <= longest else None


def _size(size_bytes: int | None, lease: Lease) -> int | None:
    return size_bytes if size_bytes is not None and 0 < size_bytes <= lease.disk_gb * _GIGABYTE else None


def _first(new: float | None, old: float | None) -> float | None:
    return new if new is not None else old
