"""Instances that a guard ended because it heard nothing of the daemon: no host is to blame, and the slot is filled.

Invariant: a note counts only where the switch fired in the present stretch of running. What it says of time is the
number that the daemon wrote last and the silence that the guard counted, so a host's own clock plays no part.
"""

from datetime import UTC, datetime, timedelta

from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.record.lease import Lease

SWITCHED = "deadman"
"""The rule of its evidence, and the end reason of such a lease until it runs again."""


def of(fleet: Fleet, held: Lease) -> tuple[Cause, Evidence] | None:
    """Return why a lease is no longer running, if the switch of its guard ended it."""
    report = fleet.guard_reports.get(held.intent_id)
    note = report.switch if report is not None else None
    if held.guard_run is None or note is None or note.lease != held.intent_id or note.written is None:
        return None
    last = datetime.fromtimestamp(note.written, UTC)
    if last + timedelta(seconds=note.silent_seconds) < (held.run_since or held.state_since):
        return None
    hours = note.silent_seconds / 3600
    sentence = (
        f"its guard ended it after {hours:.1f} h without a sign of life; the last was of {last:%Y-%m-%d %H:%M} UTC"
    )
    return Cause.EXTERNAL_STOP, Evidence(SWITCHED, sentence)
