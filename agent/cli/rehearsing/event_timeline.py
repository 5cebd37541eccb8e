"""The events of a rehearsal folded into rows for a person: one row for each step and its result.

1. A rent or a move is one row: that the old lease was parked first and released when the new one ran is part of it.
2. A start that came back is told on the row that asked for it; a loss always has a row of its own.
3. What is not known here is shown under the ledger's own name for it, never dropped.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.lease import Lease

FOLDED = frozenset({"cancel_start", "moved", "release_again"})
"""Reasons of orders that belong to a step with a row of its own."""
SILENT = frozenset({"lease.released", "lease.starting", "lease.ready", "intent.void", "limit.struck"})
STEPS: Mapping[str, tuple[str, str]] = {
    "lease.resumed": ("resumed by itself", "green"),
    "lease.start_lost": ("LOST, not yet running", "red"),
    "lease.failed": ("START FAILED", "red"),
    "lease.paused": ("pause", "yellow"),
    "lease.queued": ("ask to start again", "cyan"),
    "lease.missing": ("not listed", "yellow"),
    "lease.gone": ("GONE", "red"),
    "lease.offline": ("HOST OFFLINE", "red"),
    "lease.exited": ("CONTAINER ENDED", "red"),
    "lease.leftover": ("leftover of a refusal", "yellow"),
    "lease.released_by_us": ("release", "blue"),
    "intent.rejected": ("refused", "yellow"),
    "intent.in_doubt": ("IN DOUBT", "red"),
    "intent.confirmed": ("doubt settled: done", "green"),
    "orphan.seen": ("ORPHAN", "red"),
    "protection.tripped": ("rest", "yellow"),
}
RENTS = {"best_offer": "rent", "return": "move to cheaper"}


@dataclass(slots=True)
class Row:
    """One row: what was done or what happened, and `up_at`, the time at which the workload then ran."""

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
        """Return how long it took until the workload ran."""
        return None if self.up_at is None else self.up_at - self.at


def fold(events: Iterable[Event], leases: Iterable[Lease]) -> list[Row]:
    """Return the rows of events given from the oldest to the newest."""
    tenures = {lease.intent_id: lease.tenure for lease in leases}
    rows: list[Row] = []
    waiting: dict[str, Row] = {}
    for event in events:
        if event.kind == "lease.running" or (event.kind == "lease.resumed" and event.lease_id in waiting):
            started = waiting.pop(event.intent_id, None) or waiting.pop(event.lease_id, None)
            if started is not None:
                started.up_at = event.at
                continue
        row = _row(event, tenures)
        if row is None:
            continue
        rows.append(row)
        if event.kind == "lease.opened":
            waiting[event.intent_id] = row
        elif event.kind in {"lease.rebid", "lease.queued"} and event.reason_code != "lower_bid":
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
    if event.kind == "lease.opened":
        named = RENTS.get(event.reason_code, "move")
        return (f"{named}, on demand", "magenta") if is_on_demand else (named, "green")
    if event.kind == "lease.interrupted" and event.cause is not None:
        return event.cause.value.upper().replace("_", " "), "red"
    if event.kind == "lease.rebid":
        return ("lower the bid", "cyan") if event.reason_code == "lower_bid" else ("raise the bid", "cyan")
    return STEPS.get(event.kind, (event.kind, "yellow"))


def _price(event: Event, *, is_on_demand: bool) -> str:
    """Return the bid, or the rate of an on-demand lease, with disk."""
    if is_on_demand:
        return f"{event.rate} ask" if event.rate is not None and event.kind == "lease.opened" else ""
    return f"{event.bid} bid" if event.bid is not None else ""


def _why(event: Event) -> str:
    """Return the evidence of a loss, or the reason of a step, as plain text."""
    return event.evidence if event.cause is not None else event.reason
