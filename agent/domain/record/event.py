"""An event: one thing that happened to a lease, an intent or a limit, as the ledger keeps it."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.market.interruption import Cause
from agent.domain.money import Usd, UsdPerHour
from agent.domain.record.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class Event:
    """One fact, never changed after it is written.

    `at` is when it happened as well as we know,
    `seen_at` when we saw it. `rule` and `evidence` say what a cause rests on; `reason_code` and `reason` why we acted.
    The ledger numbers events as they are written: `event_id` is None before.
    """

    at: datetime
    kind: EventKind
    seen_at: datetime | None = None
    workload: str = ""
    slot: int | None = None
    lease_id: str = ""
    intent_id: str = ""
    market: str = ""
    host_id: str = ""
    cause: Cause | None = None
    rule: str = ""
    evidence: str = ""
    bid: UsdPerHour | None = None
    floor: UsdPerHour | None = None
    rate: UsdPerHour | None = None
    amount: Usd | None = None
    reason_code: str = ""
    reason: str = ""
    event_id: int | None = None
