"""Paid time by phase (loading, restoring, useful, lost), in whole microseconds, so that the parts add up exactly.

Loading is paid time in which the container did not run. Restoring is from the container's start to the beginning of
useful work: after the promised restore, or at its sign of readiness. Later time is useful. An interruption makes the
time since the last checkpoint lost.

Invariants:
1. Of every span, paid = loading + restoring + useful + lost, exactly; each microsecond has one phase.
2. Splitting a span in one piece or in many gives the same sums.
3. Time that an interruption wastes moves from useful to lost, on the days on which the work was done. What a batch's
   own end counted as lost moves back once the work is done (`credited_work.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from agent.decide.accounting import meter
from agent.domain.record.lease import Bills, Lease
from agent.domain.record.paid_time import Phases
from agent.domain.work.ready_sign import Readiness
from agent.domain.work.workload import Checkpoint, CheckpointPlace, Workload

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Promise:
    """A workload's own figures for its useful time."""

    checkpoint: Checkpoint = Checkpoint()
    ready: Readiness = field(default_factory=Readiness)
    kept_at: datetime | None = None
    """When the last kept checkpoint was made, if a guard measured it; it then replaces `checkpoint`'s interval."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The container within a span: since when it runs, and when and how it stopped; None if it did not.

    `is_lost`: we did not order the stop, so the work since the last checkpoint is lost.
    """

    since: datetime | None = None
    stopped_at: datetime | None = None
    is_lost: bool = False


def promise(work: Workload | None, kept_at: datetime | None = None) -> Promise:
    """Return the figures of a workload; an unknown workload has the defaults. `kept_at` was measured."""
    return Promise(kept_at=kept_at) if work is None else Promise(work.checkpoint, work.ready, kept_at)


def split(
    lease: Lease, until: datetime, turns: Sequence[meter.Turn], promised: Promise, ran: Ran
) -> tuple[Phases, ...]:
    """Return the phases of the time that `meter.accrue` charges for the same span."""
    found: list[Phases] = []
    walk = _Walk(lease, promised, ran, found)
    for start, end, bills in meter.spans(lease, until, turns):
        if bills is Bills.GPU_AND_DISK:
            walk.paid(start, end)
            continue
        walk.stop(start)
        if bills is Bills.DISK:
            disk = lease.disk_rate.over((end - start).total_seconds())
            found.append(Phases(lease.lease_id, start.date(), paused_disk=disk))
    end = max(until, lease.accrued_until)
    if ran.stopped_at is not None:
        walk.stop(min(ran.stopped_at, end))
    return _by_day(found)


class _Walk:
    """A walk through the paid spans of a lease in order, which tracks whether its container runs."""

    def __init__(self, lease: Lease, promised: Promise, ran: Ran, parts: list[Phases]) -> None:
        self._held = lease
        self._promised = promised
        self._ran = ran
        self._found = parts
        self._runs = lease.run_since is not None
        self._stalled_since = lease.stalled_since
        is_asked = promised.ready.is_asked
        begun = lease.run_since + promised.checkpoint.restore if lease.run_since is not None else None
        self._useful_from = lease.ready_since if is_asked else begun

    def paid(self, start: datetime, end: datetime) -> None:
        """Split one paid span of one day."""
        since, stopped = self._ran.since, self._ran.stopped_at
        if not self._runs and since is not None and since < end and (stopped is None or start < stopped):
            at = max(since, start)
            self._load(start, at)
            self._runs, start = True, at
            asked = self._promised.ready.is_asked
            self._useful_from = None if asked else at + self._promised.checkpoint.restore
        if not self._runs:
            self._load(start, end)
            return
        if stopped is not None and stopped < end:
            at = max(stopped, start)
            self._run(start, at)
            self.stop(at)
            self._load(at, end)
            return
        self._run(start, end)

    def stop(self, at: datetime) -> None:
        """End a stretch of running, and move its lost part from useful to lost."""
        begin, self._useful_from = self._useful_from, None
        did_run, self._runs = self._runs, False
        stalled, self._stalled_since = self._stalled_since, None
        if not did_run or begin is None or at <= begin:
            return
        worked = at if stalled is None else min(max(stalled, begin), at)
        kept = self._kept_until(begin, worked) if self._ran.is_lost else worked
        for start, end in meter.days(kept, at):
            self._found.append(Phases(self._held.lease_id, start.date(), spoiled=micros(start, end)))

    def _kept_until(self, begin: datetime, at: datetime) -> datetime:
        """Return until when the work of a lost stretch that was useful from `begin` to `at` is kept."""
        checkpoint, kept_at = self._promised.checkpoint, self._promised.kept_at
        if kept_at is not None:
            return min(max(begin, kept_at), at)
        if checkpoint.place is not CheckpointPlace.NONE and checkpoint.interval > timedelta():
            return begin + (at - begin) // checkpoint.interval * checkpoint.interval
        return begin

    def _load(self, start: datetime, end: datetime) -> None:
        self._found.append(Phases(self._held.lease_id, start.date(), loading=micros(start, end)))

    def _run(self, start: datetime, end: datetime) -> None:
        turn = end if self._useful_from is None else min(max(self._useful_from, start), end)
        restoring, useful = micros(start, turn), micros(turn, end)
        self._found.append(Phases(self._held.lease_id, start.date(), restoring=restoring, useful=useful))


def redeemed(lease: Lease) -> tuple[Phases, ...]:
    """Return time counted as restoring that was useful: the workload was ready before gpubid knew it."""
    if lease.ready_since is None:
        return ()
    parts = meter.days(lease.ready_since, lease.accrued_until)
    return tuple(Phases(lease.lease_id, start.date(), redeemed=micros(start, end)) for start, end in parts)


def charges(parts: Iterable[Phases]) -> list[meter.Charge]:
    """Return phases as charges without money of their own."""
    return [meter.Charge(part.lease_id, part.day, phases=part) for part in parts]


def micros(start: datetime, end: datetime) -> int:
    """Return the whole microseconds of a span, 0 if it is none."""
    return max((end - start) // _MICROSECOND, 0)


def _by_day(parts: Iterable[Phases]) -> tuple[Phases, ...]:
    sums: dict[date, Phases] = {}
    for part in parts:
        known = sums.get(part.day, Phases(part.lease_id, part.day))
        sums[part.day] = Phases(
            part.lease_id,
            part.day,
            known.loading + part.loading,
            known.restoring + part.restoring,
            known.useful + part.useful,
            known.spoiled + part.spoiled,
            known.redeemed + part.redeemed,
            known.finished + part.finished,
            known.paused_disk + part.paused_disk,
        )
    return tuple(part for _, part in sorted(sums.items()))
