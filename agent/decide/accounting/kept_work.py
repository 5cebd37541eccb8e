"""Work that a guard has carried to a bucket: from when on the work of a running lease is kept nowhere."""

from datetime import datetime

from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease


def kept_at(fleet: Fleet, held: Lease) -> datetime | None:
    """Return since when the work of the present stretch of running is kept nowhere; None where nobody measured it."""
    figures = fleet.guard_figures.get(held.lease_id)
    if figures is None or figures.stretch != held.runs or held.run_since is None:
        return None
    return figures.kept_at
