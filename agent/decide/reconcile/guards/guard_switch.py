"""Instances that their guard ended because the daemon was silent: no host is blamed, and the slot is filled again.

Invariants:
1. A note counts only if the switch fired in the present stretch of running. Its times are the daemon's last sign of
   life and the silence that the guard counted, so a host's own clock does not matter.
2. A note counts only if no daemon metered the lease in that silence: a host cannot forge one while a daemon runs.
3. A note counts only if the guard was given a switch at its rent, and counted a silence at least as long as that
   switch's.
4. A stop that a switch may have caused while no daemon metered is not judged before the bucket was read after the
   listing that first showed it, for at most `guard_end.PATIENCE` from that listing on, which the ledger dates. An older
   report cannot have the note. Until then the ledger keeps the lease as it was: the note is still one of its stretch.
"""

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.guards import guard_end
from agent.decide.reconcile.losses import cause
from agent.decide.reconcile.pass_memory import Suspicion
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms, sign_of_life

SWITCHED = "deadman"
"""The rule of the evidence, and the end reason of such a lease until it runs again."""


def of(fleet: Fleet, lease: Lease) -> tuple[Cause, Evidence] | None:
    """Return the cause and the evidence if the switch of its guard ended a lease, else None."""
    report = fleet.guard_reports.get(lease.intent_id)
    note = report.switch if report is not None else None
    if lease.guard_run is None or note is None or note.lease != lease.intent_id or note.written is None:
        return None
    last, silence = datetime.fromtimestamp(note.written, UTC), timedelta(seconds=note.silent_seconds)
    is_long = silence >= kept_terms.least_silence(lease)
    is_of_now = lease.began <= last + silence <= fleet.now
    was_away = last >= lease.accrued_until - sign_of_life.SPARE
    if not (is_long and is_of_now and was_away):
        return None
    hours = note.silent_seconds / 3600
    sentence = (
        f"its guard ended it after {hours:.1f} h without a sign of life; the last was of {last:%Y-%m-%d %H:%M} UTC"
    )
    return Cause.EXTERNAL_STOP, Evidence(SWITCHED, sentence)


def is_awaited(fleet: Fleet, lease: Lease, ended_by: datetime) -> bool:
    """Return whether the bucket of a lease may have a note that nobody has read.

    `ended_by` is the time of the listing that first showed the lease's end.
    """
    report = fleet.guard_reports.get(lease.intent_id)
    is_read = report is not None and report.read_at >= ended_by
    return not is_read and fleet.now - ended_by < guard_end.PATIENCE and _may_have_fired(fleet, lease)


def is_stop_awaited(fleet: Fleet, lease: Lease) -> bool:
    """Return whether a lease is listed as stopped, and the ledger does not have that before its bucket was read."""
    row = _row(fleet, lease)
    is_stopped = row is not None and row.state is InstanceState.PAUSED and lease.state is LeaseState.RUNNING
    return is_stopped and _may_have_fired(fleet, lease)


def is_judged_later(fleet: Fleet, lease: Lease, doubted: Suspicion) -> bool:
    """Return whether the verdict on such a stop waits, since its market does not explain it either.

    The stop was first listed when `doubted` began.
    """
    view, row = fleet.markets.get(lease.market), _row(fleet, lease)
    if (
        view is None
        or row is None
        or not is_stop_awaited(fleet, lease)
        or not is_awaited(fleet, lease, lease.stop_seen_at or doubted.seen_at)
    ):
        return False
    why, _ = cause.of_row(lease, row, view, doubted.previous, fleet.now)
    return why in {Cause.EXTERNAL_STOP, Cause.UNKNOWN}


def noted(lease: Lease, doubted: Suspicion) -> LeaseChanged | None:
    """Return the change that records when a stop that waits was first listed, unless the ledger has that."""
    if lease.stop_seen_at is not None:
        return None
    return LeaseChanged(lease, replace(lease, stop_seen_at=doubted.seen_at), None)


def _may_have_fired(fleet: Fleet, lease: Lease) -> bool:
    """Return whether no daemon has metered a guarded lease for as long as its switch waits."""
    work = fleet.workload(lease.slot.workload)
    if lease.guard_run is None or not lease.has_run or work is None or work.guard is None or work.guard.bucket is None:
        return False
    return not lease.is_held and fleet.now - lease.accrued_until + sign_of_life.SPARE >= kept_terms.least_silence(lease)


def _row(fleet: Fleet, lease: Lease) -> Instance | None:
    view = fleet.markets.get(lease.market)
    return view.instance(lease.instance_id) if view is not None else None
