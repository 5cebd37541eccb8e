"""Spreading a workload over owners: who rents out several hosts may take them all away at once."""

from collections import Counter

from agent.domain.fleet import Fleet
from agent.domain.market.host import OwnerKey
from agent.domain.work.workload import Workload


def owners(fleet: Fleet, work: Workload) -> Counter[OwnerKey]:
    """Return how many leases of a workload stand on hosts of each owner; nothing where the workload does not ask."""
    if work.max_per_owner is None:
        return Counter()
    mine = {lease.lease_id: lease.owner for place in work.places for lease in fleet.leases_of(place)}
    return Counter(owner for owner in mine.values() if owner.is_known)


def is_crowded(work: Workload, owner: OwnerKey, held: Counter[OwnerKey]) -> bool:
    """Return whether no more slots of the workload may go to an owner; an owner nobody knows counts as another."""
    return work.max_per_owner is not None and owner.is_known and held[owner] >= work.max_per_owner
