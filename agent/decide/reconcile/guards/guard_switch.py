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

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from agent.decide.facts import LeaseChanged
from agent.decide.reconcile.guards import guard_end
from agent.decide.reconcile.losses import cause
from agent.decide.reconcile.pass_memory import Suspicion
from agent.domain.fleet import Fleet
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import kept_terms, sign_of_life

SPARE = timedelta(minutes=30)
"""Tolerance between the last sign and the last metering. A running daemon writes a sign every ten minutes, meters every
five, and gives an alert if it cannot write a sign."""
SWITCHED = "deadman"
"""The rule of the evidence, and the end reason of such a lease until it runs again."""


def of(fleet: Fleet, held: Lease) -> tuple[Cause, Evidence] | None:
    """Return the cause and the evidence if the switch of its guard ended a lease, else None."""
    report = fleet.guard_reports.get(held.intent_id)
    note = report.switch if report is not None else None
    if held.guard_run is None or note is None or note.lease != held.intent_id or note.written is None:
        return None
    last, silence = datetime.fromtimestamp(note.written, UTC), timedelta(seconds=note.silent_seconds)
    is_long = silence >= _least(held)
    is_of_now = held.began <= last + silence <= fleet.now
    was_away = last >= held.accrued_until - SPARE
    if not (is_long and is_of_now and was_away):
        return None
    hours = note.silent_seconds / 3600
    sentence = (
        f"its guard ended it after {hours:.1f} h without a sign of life; the last was of {last:%Y-%m-%d %H:%M} UTC"
    )
    return Cause.EXTERNAL_STOP, Evidence(SWITCHED, sentence)


def is_awaited(fleet: Fleet, held: Lease, ended_by: datetime) -> bool:
    """Return whether the bucket of a lease may have a note that nobody has read.

    `ended_by` is the time of the listing that first showed the lease's end.
    """
    report = fleet.guard_reports.get(held.intent_id)
    is_read = report is not None and report.read_at >= ended_by
    return not is_read and fleet.now - ended_by < guard_end.PATIENCE and _may_have_fired(fleet, held)


def is_stop_awaited(fleet: Fleet, held: Lease) -> bool:
    """Return whether a lease is listed as stopped, and the ledger does not have that before its bucket was read."""
    row = _row(fleet, held)
    is_stopped = row is not None and row.state is InstanceState.PAUSED and held.state is LeaseState.RUNNING
    return is_stopped and _may_have_fired(fleet, held)


def is_judged_later(fleet: Fleet, held: Lease, doubted: Suspicion) -> bool:
    """Return whether such a stop, first listed when `doubted` began, waits: its market does not explain it either."""
    view, row = fleet.markets.get(held.market), _row(fleet, held)
    if (
        view is None
        or row is None
        or not is_stop_awaited(fleet, held)
        or not is_awaited(fleet, held, held.stop_seen_at or doubted.seen_at)
    ):
        return False
    why, _ = cause.of_stop(held, row.state, view, doubted.previous, fleet.now, row.message)
    return why in {Cause.EXTERNAL_STOP, Cause.UNKNOWN}


def noted(held: Lease, doubted: Suspicion) -> LeaseChanged | None:
    """Return the change that records when a stop that waits was first listed, unless the ledger has that."""
    if held.stop_seen_at is not None:
        return None
    return LeaseChanged(held, replace(held, stop_seen_at=doubted.seen_at), None)


def _may_have_fired(fleet: Fleet, held: Lease) -> bool:
    """Return whether no daemon has metered a guarded lease for as long as its switch waits."""
    work = fleet.workload(held.slot.workload)
    if held.guard_run is None or not held.has_run or work is None or work.guard is None or work.guard.bucket is None:
        return False
    return not held.is_held and fleet.now - held.accrued_until + SPARE >= _least(held)


def _row(fleet: Fleet, held: Lease) -> Instance | None:
    view = fleet.markets.get(held.market)
    return view.instance(held.instance_id) if view is not None else None


def _least(held: Lease) -> timedelta:
    """Return the shortest silence after which the switch of a lease fires."""
    terms = kept_terms.read(held)
    if terms is None or not terms.is_switch_recorded:
        return sign_of_life.SHORTEST
    return timedelta.max if terms.deadman is None else terms.deadman
