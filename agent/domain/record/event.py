"""An event: one thing that happened to a lease, an intent or a limit, as the ledger keeps it."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.market.interruption import Cause
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class Event:
    """One fact, never changed after it is written."""

    at: datetime
    """When it happened, as well as we know."""
    kind: EventKind
    """What happened."""
    seen_at: datetime | None = None
    """When we saw it."""
    workload: str = ""
    """Whom it concerns; empty where none."""
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
    """What that rule saw, in one sentence."""
    bid: UsdPerHour | None = None
    """Our bid then."""
    floor: UsdPerHour | None = None
    """The lowest bid that would have run then."""
    rate: UsdPerHour | None = None
    """What the lease cost per hour then."""
    amount: Usd | None = None
    """What it came to in money."""
    reason_code: str = ""
    """Why we acted, as a code."""
    reason: str = ""
    """Why we acted, in one sentence."""
    event_id: int | None = None
    """Its number, which the ledger gives as it is written; None before."""
