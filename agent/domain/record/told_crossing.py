"""A threshold of money that was crossed and told: it is not told again until its window is over."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.money import Usd
from agent.domain.record.budget import Scope, Window
from agent.domain.record.event_kind import EventKind
from agent.domain.record.expiry import Expiring

CROSSED = "crossed"
"""Under this the ledger remembers what was told."""


@dataclass(frozen=True, slots=True)
class ToldCrossing(Expiring):
    """A threshold that was told; a moved threshold is another one."""

    kind: EventKind
    """The event that told it."""
    scope: Scope
    window: Window
    threshold: Usd
    since: datetime
    """When it was told."""
    ground: str
    """What was spent of it then."""
    until: datetime | None = None
    """When its window is over; None: never, and it is told once."""

    @property
    def place(self) -> tuple[str, str]:
        """Scope and key."""
        return CROSSED, f"{self.kind} {self.scope} {self.window.value} {self.threshold.micros}"
