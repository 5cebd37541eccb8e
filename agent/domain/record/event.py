"""An event: one fact about a lease, an intent or a limit, as the ledger keeps it."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.market.interruption import Cause, announced
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class Event:
    """One fact, never changed after it is written."""

    at: datetime
    """When it happened, as far as known."""
    kind: EventKind
    """The kind of the event."""
    seen_at: datetime | None = None
    """When we first saw it."""
    workload: str = ""
    """The workload; empty if it concerns none."""
    slot: int | None = None
    """The number of the slot."""
    lease_id: str = ""
    intent_id: str = ""
    market: str = ""
    host_id: str = ""
    cause: Cause | None = None
    """Why a lease stopped running."""
    rule: str = ""
    """The rule by which the cause was found."""
    evidence: str = ""
    """The observation of that rule, in one sentence."""
    bid: UsdPerHour | None = None
    """Our bid at that time."""
    floor: UsdPerHour | None = None
    """The lowest bid that would have run at that time."""
    rate: UsdPerHour | None = None
    """The hourly cost of the lease at that time."""
    amount: Usd | None = None
    """The amount of money of the event."""
    reason_code: str = ""
    """The code of the reason for our action."""
    reason: str = ""
    """The reason for our action, in one sentence."""
    event_id: int | None = None
    """Its number, which the ledger assigns when it is written; None before."""
    notice_at: datetime | None = None
    """For a loss, when the market had said before that it ends the lease; None without a notice."""

    @property
    def observation(self) -> str:
        """The evidence, with the notice that came before a loss; empty without evidence."""
        return f"{self.evidence}{announced(self.notice_at)}" if self.evidence else ""
