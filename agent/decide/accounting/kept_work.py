"""The time of the last work that a guard has uploaded to a bucket: later work of a running lease is kept nowhere."""

from datetime import datetime

from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease


def kept_at(fleet: Fleet, lease: Lease) -> datetime | None:
    """Return the time since which work of the present stretch is kept nowhere; None if it was not measured."""
    figures = fleet.guard_figures.get(lease.lease_id)
    if figures is None or figures.stretch != lease.runs or lease.run_since is None:
        return None
    return figures.kept_at
