"""A crossed threshold of money that was reported. It is not reported again until its window is over."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import Usd
from agent.domain.record.budget import Scope, Window
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiry import Expiring

CROSSED = "crossed"
"""The scope under which the ledger keeps reported thresholds."""


@dataclass(frozen=True, slots=True)
class ReportedCrossing(Expiring):
    """A reported threshold; a changed threshold is another one."""

    kind: EventKind
    """The event that reported it."""
    scope: Scope
    window: Window
    threshold: Usd
    since: datetime
    """When it was reported."""
    ground: str
    """The spend at that time."""
    until: datetime | None = None
    """When its window is over; None: never, so it is reported only once."""

    @property
    def place(self) -> tuple[str, str]:
        """The scope and the key."""
        return CROSSED, f"{self.kind} {self.scope} {self.window.value} {self.threshold.micros}"
