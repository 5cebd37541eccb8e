"""The leases that end when a person says that nothing is left of an instance.

While a lease is being released, its slot may already run on another lease. The person never means that other lease.
"""

from collections.abc import Iterable

from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import GONE, Reason, Release


def releases(leases: Iterable[Lease]) -> tuple[Release, ...]:
    """Return the releases of the leases that are being released, or of all if none is."""
    reason, found = Reason(GONE, "a person says that nothing of it is left"), tuple(leases)
    ending = [lease for lease in found if lease.state is LeaseState.RELEASING]
    return tuple(Release(lease, reason) for lease in ending or found)
