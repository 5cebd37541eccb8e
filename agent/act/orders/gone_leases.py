"""A person's word that nothing is left of an instance: which leases it is about.

Beside a lease that is being released its slot may run on another one. The word is never about that one.
"""

from collections.abc import Iterable

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import GONE, Reason, Release


def releases(leases: Iterable[Lease]) -> tuple[Release, ...]:
    """Return the releases of the leases that are being released, or of all if none is."""
    reason, found = Reason(GONE, "a person says that nothing of it is left"), tuple(leases)
    ending = [lease for lease in found if lease.state is LeaseState.RELEASING]
    return tuple(Release(lease, reason) for lease in ending or found)
