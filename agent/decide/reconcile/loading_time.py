"""How long a first start has loaded, without the time in which its host was silent or its market was dark.

Invariants:
1. The ledger has one instant, from which a lease has loaded. A silence moves it forward by its length, so that the
   loading of a host that goes silent again and again adds up over its silences.
2. Time in which nobody listed the market counts against no host.
"""

from datetime import datetime, timedelta

from agent.domain.record.lease import Lease, LeaseState

UNLISTED = timedelta(minutes=5)
"""Two looks that are further apart show a dark market, or a stop of our process. Shorter gaps count as loading."""
_SILENT = frozenset({LeaseState.OFFLINE, LeaseState.MISSING})


def since(
    lease: Lease, target: LeaseState, turned: datetime, between: tuple[datetime, datetime] | None = None
) -> datetime | None:
    """Return the new `loading_since` of a lease that is in state `target` since `turned`.

    `between` are the last look and this one. None: the lease does not load, or loads since its state began.
    """
    began = lease.loads_since
    if began is None or lease.has_run or not (target is LeaseState.STARTING or target in _SILENT):
        return None
    if lease.state in _SILENT and target is not lease.state:
        return began + max(turned - lease.state_since, timedelta())
    unlisted = between[1] - between[0] if between is not None else timedelta()
    if lease.state is LeaseState.STARTING and unlisted > UNLISTED:
        return began + unlisted
    return lease.loading_since if target is LeaseState.STARTING else began
