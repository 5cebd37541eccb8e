"""Instances that a guard ended because it heard nothing of the daemon: no host is to blame, and the slot is filled.

Invariants:
1. A note counts only where the switch fired in the present stretch of running. What it says of time is the number that
   the daemon wrote last and the silence that the guard counted, so a host's own clock plays no part.
2. It counts only where no daemon metered the lease in that silence: a host cannot forge it while a daemon lives.
"""

from datetime import UTC, datetime, timedelta

from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.record.lease import Lease
from agent.domain.work import sign_of_life

SPARE = timedelta(minutes=30)
"""A living daemon writes a sign every ten minutes and meters every five; one that could not write it was told so."""
SWITCHED = "deadman"
"""The rule of its evidence, and the end reason of such a lease until it runs again."""


def of(fleet: Fleet, held: Lease) -> tuple[Cause, Evidence] | None:
    """Return why a lease is no longer running, if the switch of its guard ended it."""
    report = fleet.guard_reports.get(held.intent_id)
    note = report.switch if report is not None else None
    if held.guard_run is None or note is None or note.lease != held.intent_id or note.written is None:
        return None
    last, silence = datetime.fromtimestamp(note.written, UTC), timedelta(seconds=note.silent_seconds)
    is_of_now = (held.run_since or held.state_since) <= last + silence <= fleet.now
    was_away = last >= held.accrued_until - SPARE
    if silence < sign_of_life.SHORTEST or not is_of_now or not was_away:
        return None
    hours = note.silent_seconds / 3600
    sentence = (
        f"its guard ended it after {hours:.1f} h without a sign of life; the last was of {last:%Y-%m-%d %H:%M} UTC"
    )
    return Cause.EXTERNAL_STOP, Evidence(SWITCHED, sentence)
