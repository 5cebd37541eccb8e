"""How long a start has loaded, without the time in which its host was silent or its market was dark.

Invariants:
1. The ledger has one instant, from which a lease has loaded. A silence moves it forward by its length, so that the
   loading of a host that goes silent again and again adds up over its silences.
2. Of a time in which nobody listed the market, at most `UNLISTED` counts against a host, or three polls where that is
   more. So a dark market ends no start, and a stuck start is overdue at last however seldom its market is listed.
"""

from datetime import datetime, timedelta

from agent.domain.record.lease import Lease, LeaseState

UNLISTED = timedelta(minutes=5)
"""Two looks that are further apart show a dark market, or a stop of our process. Time beyond this does not count."""
POLLS = 3
"""The least such distance in polls, for a configuration that polls seldom."""
_SILENT = frozenset({LeaseState.OFFLINE, LeaseState.MISSING})


def since(
    lease: Lease, target: LeaseState, turned: datetime, between: tuple[datetime, datetime], poll: timedelta
) -> datetime | None:
    """Return the new `loading_since` of a lease that is in state `target` since `turned`.

    `between` are the last look at it and the one that showed `target`. None: the lease does not load, or loads since
    its state began.
    """
    began, is_silent = lease.loads_since, target in _SILENT
    if began is None or not (target is LeaseState.STARTING or is_silent):
        return None
    if lease.state in _SILENT and is_silent:
        return began if target is lease.state else began + (turned - lease.state_since)
    if lease.state in _SILENT:
        heard = max(turned, lease.state_since)
        return began + (heard - lease.state_since) + _unlisted(heard, between[1], poll)
    fell_silent = min(turned, between[1]) if is_silent else between[1]
    unlisted = _unlisted(between[0], fell_silent, poll)
    if not is_silent:
        return began + unlisted if unlisted else lease.loading_since
    return began + unlisted + (turned - fell_silent)


def _unlisted(start: datetime, end: datetime, poll: timedelta) -> timedelta:
    """Return how much of the time between two looks counts against no host."""
    return max(end - start - max(UNLISTED, POLLS * poll), timedelta())
