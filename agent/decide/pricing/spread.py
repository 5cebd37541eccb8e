"""The spread of a workload over owners: an owner of several hosts may remove them all at once."""

from collections import Counter

from agent.domain.fleet import Fleet
from agent.domain.market.host import OwnerKey
from agent.domain.work.workload import Workload


def owners(fleet: Fleet, work: Workload) -> Counter[OwnerKey]:
    """Return how many leases of a workload are on hosts of each owner; empty without `max_per_owner`."""
    if work.max_per_owner is None:
        return Counter()
    mine = {lease.lease_id: lease.owner for place in work.places for lease in fleet.leases_of(place)}
    return Counter(owner for owner in mine.values() if owner.is_known)


def is_crowded(work: Workload, owner: OwnerKey, held: Counter[OwnerKey]) -> bool:
    """Return whether an owner already has as many slots of the workload as allowed.

    Unknown owners count as different ones.
    """
    return work.max_per_owner is not None and owner.is_known and held[owner] >= work.max_per_owner
