"""The events of a rehearsal folded into rows for a person: one row for each step and its result.

1. A rent or a move is one row, with the parking and the release of the old lease.
2. A successful start is on the row of its order. A loss always has a row of its own.
3. An unknown event is shown under the ledger's own name for it, never dropped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease

FOLDED = frozenset({"cancel_start", "moved", "release_again"})
"""Reasons of orders that belong to a step with a separate row."""
SILENT = frozenset({EventKind.LEASE_RELEASED, EventKind.LEASE_STARTING, EventKind.LEASE_READY, EventKind.INTENT_VOID})
STEPS: Mapping[str, tuple[str, str]] = {
    EventKind.LEASE_RESUMED: ("resumed by itself", "green"),
    EventKind.LEASE_START_LOST: ("LOST, not yet running", "red"),
    EventKind.LEASE_FAILED: ("START FAILED", "red"),
    EventKind.LEASE_PAUSED: ("pause", "yellow"),
    EventKind.LEASE_QUEUED: ("wait for a start", "cyan"),
    EventKind.LEASE_MISSING: ("not listed", "yellow"),
    EventKind.LEASE_GONE: ("GONE", "red"),
    EventKind.LEASE_OFFLINE: ("HOST OFFLINE", "red"),
    EventKind.LEASE_EXITED: ("CONTAINER ENDED", "red"),
    EventKind.LEASE_LEFTOVER: ("leftover of a refusal", "yellow"),
    EventKind.LEASE_RELEASED_BY_US: ("release", "blue"),
    EventKind.LEASE_REASSIGNED: ("go on with its host", "green"),
    EventKind.INTENT_REJECTED: ("refused", "yellow"),
    EventKind.INTENT_ACCEPTED: ("release accepted", "blue"),
    EventKind.INTENT_IN_DOUBT: ("IN DOUBT", "red"),
    EventKind.INTENT_CONFIRMED: ("doubt settled: done", "green"),
    EventKind.ORPHAN_SEEN: ("ORPHAN", "red"),
    EventKind.PROTECTION_TRIPPED: ("rest", "yellow"),
}
LOWERED = frozenset({"lower_bid", "cap_limit"})
"""Reasons of changed bids that start nothing."""
REBIDS = {
    "lower_bid": "lower the bid",
    "value_limit": "change the limit",
    "cap_limit": "lower the limit",
    "start_limit": "lower the limit",
}
RENTS = {"best_offer": "rent", "return": "move to cheaper"}


@dataclass(slots=True)
class Row:
    """One row: a step or an event, and `up_at`, the time at which the workload then ran."""

    at: datetime
    slot: str
    what: str
    colour: str
    host: str
    price: str
    why: str
    up_at: datetime | None = None

    @property
    def waited(self) -> timedelta | None:
        """Return the time until the workload ran."""
        return None if self.up_at is None else self.up_at - self.at


def fold(events: Iterable[Event], leases: Iterable[Lease]) -> list[Row]:
    """Return the rows of events. The events come from the oldest to the newest."""
    tenures = {lease.intent_id: lease.tenure for lease in leases}
    rows: list[Row] = []
    waiting: dict[str, Row] = {}
    for event in events:
        if event.kind == EventKind.LEASE_RUNNING or (
            event.kind == EventKind.LEASE_RESUMED and event.lease_id in waiting
        ):
            started = waiting.pop(event.intent_id, None) or waiting.pop(event.lease_id, None)
            if started is not None:
                started.up_at = event.at
                continue
        row = _row(event, tenures)
        if row is None:
            continue
        rows.append(row)
        if event.kind == EventKind.LEASE_INTERRUPTED:
            # A lease that comes back after a loss is no result of an earlier change of its limit.
            waiting.pop(event.lease_id, None)
        elif event.kind == EventKind.LEASE_OPENED:
            waiting[event.intent_id] = row
        elif event.kind in {EventKind.LEASE_REBID, EventKind.LEASE_QUEUED} and event.reason_code not in LOWERED:
            waiting[event.lease_id] = row
    return rows


def _row(event: Event, tenures: Mapping[str, Tenure]) -> Row | None:
    if event.kind in SILENT or event.reason_code in FOLDED:
        return None
    is_on_demand = tenures.get(event.intent_id) is Tenure.ON_DEMAND
    what, colour = _named(event, is_on_demand=is_on_demand)
    slot = f"{event.workload}/{event.slot}" if event.workload and event.slot is not None else event.workload
    return Row(event.at, slot, what, colour, event.host_id, _price(event, is_on_demand=is_on_demand), _why(event))


def _named(event: Event, *, is_on_demand: bool) -> tuple[str, str]:
    if event.kind == EventKind.LEASE_OPENED:
        named = RENTS.get(event.reason_code, "move")
        return (f"{named}, on demand", "magenta") if is_on_demand else (named, "green")
    if event.kind == EventKind.LEASE_INTERRUPTED and event.cause is not None:
        return event.cause.value.upper().replace("_", " "), "red"
    if event.kind == EventKind.LEASE_REBID:
        return REBIDS.get(event.reason_code, "raise the bid"), "cyan"
    return STEPS.get(event.kind, (event.kind, "yellow"))


def _price(event: Event, *, is_on_demand: bool) -> str:
    """Return the bid, or the rate of an on-demand lease, with disk."""
    if is_on_demand:
        return f"{event.rate} ask" if event.rate is not None and event.kind == EventKind.LEASE_OPENED else ""
    return f"{event.bid} bid" if event.bid is not None else ""


def _why(event: Event) -> str:
    """Return the evidence of a loss, or the reason of a step, as plain text."""
    return event.observation if event.cause is not None else event.reason
