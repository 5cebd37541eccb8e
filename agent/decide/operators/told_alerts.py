"""Which alerts a person has been told of: each once while it lasts, and a forecast that comes and goes once an hour."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.decide.facts import Alert
from agent.domain.record.event_kind import EventKind

QUIET = timedelta(hours=1)
"""How long a forecast must have been absent before it counts as new."""
FORECASTS = frozenset({EventKind.ALERT_DEADLINE_AT_RISK, EventKind.ALERT_RATE_WARNED})
"""Alerts that compare a moving price with a limit: they come and go with each search, and the trouble stays the same.

Every other alert names something that happened, and is news when it happens again.
"""


@dataclass(frozen=True, slots=True)
class ToldAlerts:
    """The alerts that were told, with the instant at which each was last seen."""

    last_seen: Mapping[tuple[EventKind, str], datetime] = field(default_factory=dict)

    def is_new(self, alert: Alert) -> bool:
        """Return whether the alert has to be told."""
        return (alert.kind, alert.key) not in self.last_seen

    def after(self, alerts: Iterable[Alert], now: datetime) -> "ToldAlerts":
        """Return what is told once these alerts, all that stand now, are recorded."""
        forecasts = {name: seen for name, seen in self.last_seen.items() if name[0] in FORECASTS and now - seen < QUIET}
        return ToldAlerts(forecasts | {(alert.kind, alert.key): now for alert in alerts})
