"""Guards that no longer report although their bucket answers: the instance bills, and nobody knows whether it works.

Invariants:
1. Silence gives an alert and nothing else: the work may go on while only its guard is dead or its key revoked.
2. A bucket that does not answer does not make a guard silent: silence is counted up to the bucket's last answer.
"""

from collections.abc import Iterator
from datetime import timedelta

from agent.decide.facts import Alert
from agent.domain import span_text
from agent.domain.fleet import Fleet
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease, LeaseState

SILENT_AFTER = timedelta(minutes=15)
"""A guard beats each minute, also during a restore or an upload. A start waits at most ten minutes for its bucket."""


def alerts(fleet: Fleet) -> Iterator[Alert]:
    """Yield an alert for each running lease whose guard has been silent for too long."""
    for lease in fleet.leases:
        silence = _silence(fleet, lease)
        if silence is not None and silence >= SILENT_AFTER:
            yield Alert(EventKind.ALERT_GUARD_SILENT, lease.lease_id, _sentence(fleet, lease, silence))


def _silence(fleet: Fleet, lease: Lease) -> timedelta | None:
    """Return for how long a lease's guard has reported nothing new, or None if no guard should report."""
    report = fleet.guard_reports.get(lease.intent_id)
    if (
        lease.guard_run is None
        or lease.state is not LeaseState.RUNNING
        or report is None
        or report.beat_seen_at is None
    ):
        return None
    return report.read_at - max(report.beat_seen_at, lease.began)


def _sentence(fleet: Fleet, lease: Lease, silence: timedelta) -> str:
    view = fleet.markets.get(lease.market)
    sighting = view.sightings.get(lease.instance_id) if view is not None else None
    look = f"look at `gpubid logs {lease.slot}`, then perhaps `gpubid release {lease.slot}`"
    if sighting is not None and sighting.is_bare:
        return f"{lease.slot} runs without its guard, as its log says, so nothing carries its checkpoints; {look}"
    return (
        f"the guard of {lease.slot} on host {lease.host_id} has said nothing for {span_text.minutes(silence)}, "
        f"and its bucket answers: it bills {lease.billing_rate}, and its work may be over; {look}"
    )
