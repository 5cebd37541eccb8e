"""Keys that stay missing on a running instance: since when, and the alert about it.

Invariants:
1. Time is counted from the first pass that missed them. A restart of the daemon begins to count anew: the alert comes
   later, and never for keys that are there.
2. Unknown is not missing: while its market is in the dark, nothing is said about a lease.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta

from agent.decide.facts import Alert
from agent.domain import span_text
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease

LASTING = timedelta(minutes=15)
"""Keys that are not shown for longer than this raise an alert: a try that did not help was repeated three times."""


class MissingKeys:
    """The leases whose keys the market does not show, with the time since when."""

    def __init__(self) -> None:
        """Begin without any."""
        self._since: dict[str, float] = {}
        self._alerts: tuple[Alert, ...] = ()

    def see(self, leases: Iterable[Lease], whys: Mapping[str, str], lit: Iterable[str], now: float) -> None:
        """Count the leases that should have keys at the monotonic time `now`; `lit` are the markets that answer.

        `whys` says by lease why its keys are not known to be there, where that is known.
        """
        lacking = {lease.lease_id: lease for lease in leases if not lease.has_keys}
        self._since = {lease_id: self._since.get(lease_id, now) for lease_id in lacking}
        lasting, fresh = LASTING.total_seconds(), frozenset(lit)
        self._alerts = tuple(
            _alert(lease, whys.get(lease_id, ""))
            for lease_id, lease in lacking.items()
            if lease.market in fresh and now - self._since[lease_id] >= lasting
        )

    def alerts(self) -> tuple[Alert, ...]:
        """Return an alert for each lease whose keys have been missing for long."""
        return self._alerts


def _alert(lease: Lease, why: str) -> Alert:
    lasting = span_text.of(LASTING)
    said = f"{lease.slot} runs at {lease.billing_rate}, but {lease.market} has not shown its ssh keys for {lasting}"
    reason = f": {why}" if why else ""
    return Alert(EventKind.ALERT_KEYS_MISSING, lease.lease_id, f"{said}{reason}; `gpubid doctor` names such instances")
