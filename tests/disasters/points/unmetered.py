"""Point 4, too: for how long a lease that no listing has metered yet excuses the count.

The listing that only proves a rent meters nothing, and one that shows no change meters five minutes later at most.
"""

from agent.domain.record.lease import Lease, LeaseState
from tests.disasters.sight import Sight

SECONDS = 300.0
"""How long a lease that does not change is not metered."""
LISTINGS = 3
"""True listings that may show a proven lease before one of them meters it."""
_UNSURE = frozenset({LeaseState.MISSING, LeaseState.RELEASING})


class Unmetered:
    """Counts the true listings that showed each lease while it was not metered."""

    def __init__(self, poll: float) -> None:
        self._seconds = SECONDS + LISTINGS * poll
        self._shown: dict[str, int] = {}

    def see(self, sight: Sight) -> None:
        """Take in one more cycle."""
        self._shown = {
            lease.lease_id: self._shown.get(lease.lease_id, 0) + (lease.is_proven and sight.saw_truly(lease.market))
            for lease in sight.leases
            if _is_unmetered(lease) and lease.state not in _UNSURE
        }

    def excuses(self, sight: Sight) -> bool:
        """Return whether a lease is so new that nothing can be known of the count."""
        return any(_is_unmetered(lease) and not self._is_overdue(sight, lease) for lease in sight.leases)

    def _is_overdue(self, sight: Sight, lease: Lease) -> bool:
        is_old = (sight.at - lease.opened_at).total_seconds() > self._seconds
        return is_old and self._shown.get(lease.lease_id, 0) > LISTINGS


def _is_unmetered(lease: Lease) -> bool:
    return lease.accrued_until <= lease.opened_at
