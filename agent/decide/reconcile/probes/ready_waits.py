"""How long each running lease has been probed in vain for its sign of readiness.

Invariants:
1. Only time between two probes counts. A dark market and a stop of this program count against no lease.
2. A wait is whole while no sign can have been missed: its probes began with its stretch of running, were never far
   apart, and each of them could look for the same sign.
"""

from collections.abc import Mapping
from datetime import timedelta

from agent.decide.reconcile.probes import probe_pace
from agent.domain.fleet import Fleet
from agent.domain.record.lease import Lease
from agent.domain.work.ready_sign import ReadyWait, Sighting
from agent.domain.work.workload import Workload


def counted(fleet: Fleet, known: Mapping[str, ReadyWait]) -> Mapping[str, ReadyWait]:
    """Return the wait of each lease by its last probe; a lease that is not probed now keeps its wait."""
    found: dict[str, ReadyWait] = {}
    most_apart = {name: probe_pace.most_apart(fleet, name) for name in fleet.markets}
    for lease in fleet.leases:
        work, before = fleet.workload(lease.slot.workload), known.get(lease.lease_id)
        if before is not None and before.since != lease.began:
            before = None
        seen = _sighting(fleet, lease)
        if work is not None and seen is not None and is_awaited(work, lease):
            before = _counted(lease, work, before, seen, most_apart[lease.market])
        if before is not None:
            found[lease.lease_id] = before
    return found


def is_awaited(work: Workload, lease: Lease) -> bool:
    """Return whether a lease has not shown its sign of readiness in this stretch of running."""
    return work.ready.is_asked and lease.ready_since is None and lease.unhealthy_since is None


def _sighting(fleet: Fleet, lease: Lease) -> Sighting | None:
    """Return the last probe of a lease in its present stretch of running."""
    view = fleet.markets.get(lease.market)
    seen = view.sightings.get(lease.instance_id) if view is not None and view.is_fresh else None
    return seen if seen is not None and seen.at >= lease.began and not lease.is_held else None


def _counted(lease: Lease, work: Workload, before: ReadyWait | None, seen: Sighting, most: timedelta) -> ReadyWait:
    mark, passed = work.ready.mark, seen.at - (before.read_at if before is not None else lease.began)
    if before is not None and before.mark == mark and passed <= timedelta():
        return before
    counts = passed <= most and (before is None or before.mark == mark)
    is_whole = counts and seen.was_asked and (before is None or before.is_whole)
    lasted = before.lasted if before is not None and before.mark == mark else timedelta()
    return ReadyWait(lease.began, mark, seen.at, lasted + (passed if counts else timedelta()), is_whole)
