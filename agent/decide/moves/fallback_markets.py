"""The markets that a workload uses only once a slot has been down for a while, and whether that time has come.

They are closed again as soon as every slot is up: a later loss is first answered by the workload's other markets.
"""

from datetime import datetime

from agent.domain.fleet import Fleet
from agent.domain.record.lease import LeaseState
from agent.domain.slot import Slot
from agent.domain.work.workload import Workload

_UP = frozenset({LeaseState.STARTING, LeaseState.RUNNING, LeaseState.MISSING})


def closed(fleet: Fleet, work: Workload) -> frozenset[str]:
    """Return the fallback markets in which nothing may be rented yet."""
    opens = opens_at(fleet, work)
    is_open = opens is not None and opens <= fleet.now
    return frozenset() if is_open else frozenset(work.fallback.markets)


def opens_at(fleet: Fleet, work: Workload) -> datetime | None:
    """Return when the fallback markets open, or opened; None while every slot is up, or without such markets."""
    if not work.fallback.markets:
        return None
    down = [since for place in work.places if (since := _down_since(fleet, work, place)) is not None]
    return min(down) + work.fallback.after if down else None


def _down_since(fleet: Fleet, work: Workload, place: Slot) -> datetime | None:
    """Return since when no lease of a slot runs or starts; None if one does."""
    leases = fleet.leases_of(place)
    if any(lease.state in _UP for lease in leases):
        return None
    if leases:
        return max(lease.state_since for lease in leases)
    return fleet.vacated.get(place, fleet.known_since.get(work.name, fleet.started_at))
