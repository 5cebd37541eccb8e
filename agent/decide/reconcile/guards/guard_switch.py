"""Instances that their guard ended because the daemon was silent: no host is blamed, and the slot is filled again.

Invariants:
1. A note counts only if the switch fired in the present stretch of running. Its times are the daemon's last sign of
   life and the silence that the guard counted, so a host's own clock does not matter.
2. A note counts only if no daemon metered the lease in that silence: a host cannot forge one while a daemon runs.
3. A note counts only if the guard was given a switch at its rent, and counted a silence at least as long as that
   switch's.
"""

from datetime import UTC, datetime, timedelta

from agent.domain.fleet import Fleet
from agent.domain.market.interruption import Cause, Evidence
from agent.domain.record.lease import Lease
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
    is_of_now = (held.run_since or held.state_since) <= last + silence <= fleet.now
    was_away = last >= held.accrued_until - SPARE
    if not (is_long and is_of_now and was_away):
        return None
    hours = note.silent_seconds / 3600
    sentence = (
        f"its guard ended it after {hours:.1f} h without a sign of life; the last was of {last:%Y-%m-%d %H:%M} UTC"
    )
    return Cause.EXTERNAL_STOP, Evidence(SWITCHED, sentence)


def _least(held: Lease) -> timedelta:
    """Return the shortest silence after which the switch of a lease fires."""
    terms = kept_terms.read(held)
    if terms is None or not terms.is_switch_recorded:
        return sign_of_life.SHORTEST
    return timedelta.max if terms.deadman is None else terms.deadman
