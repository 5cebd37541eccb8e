"""Guards that no longer report although their bucket answers: the instance bills, and nobody knows whether it works.

Invariants:
1. Silence gives an alert and nothing else: the work may go on while only its guard is dead or its key revoked.
2. A bucket that does not answer does not make a guard silent: silence is counted up to the bucket's last answer.
"""

from collections.abc import Iterator
from datetime import timedelta

from agent.decide.facts import Alert
from agent.domain.fleet import Fleet
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState

SILENT_AFTER = timedelta(minutes=15)
"""A guard beats each minute, also during a restore or an upload. A start waits at most ten minutes for its bucket."""


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield an alert for each running lease whose guard has been silent for too long."""
    for held in fleet.leases:
        silence = _silence(fleet, held)
        if silence is not None and silence >= SILENT_AFTER:
            yield Alert(EventKind.ALERT_GUARD_SILENT, held.lease_id, _sentence(fleet, held, silence))


def _silence(fleet: Fleet, held: Lease) -> timedelta | None:
    """Return for how long a lease's guard has reported nothing new, or None if no guard should report."""
    report = fleet.guard_reports.get(held.intent_id)
    if held.guard_run is None or held.state is not LeaseState.RUNNING or report is None or report.beat_seen_at is None:
        return None
    return report.read_at - max(report.beat_seen_at, held.began)


def _sentence(fleet: Fleet, held: Lease, silence: timedelta) -> str:
    view = fleet.markets.get(held.market)
    sighting = view.sightings.get(held.instance_id) if view is not None else None
    look = f"look at `gpubid logs {held.slot}`, then perhaps `gpubid release {held.slot}`"
    if sighting is not None and sighting.is_bare:
        return f"{held.slot} runs without its guard, as its log says, so nothing carries its checkpoints; {look}"
    return (
        f"the guard of {held.slot} on host {held.host_id} has said nothing for {int(silence.total_seconds() // 60)} "
        f"minutes, and its bucket answers: it bills {held.billing_rate}, and its work may be over; {look}"
    )
