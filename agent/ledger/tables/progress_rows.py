"""The conversion of progress, measured speeds and starts between the domain and their tables."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.domain.market.gpu import GpuModel
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.domain.work.deadline import Progress, Speed, Start
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query

PROGRESS = sa.select(schema.progress)
SPEEDS = sa.select(schema.speeds)
KEPT = portable.stored(schema.progress)
MEASURED = portable.stored(schema.speeds)
RUNNING = EventKind.LEASE_RUNNING
MOST_STARTS = 256
"""The most starts in memory; this many are enough for a quantile."""


def progress_of(columns: Mapping[str, Any]) -> Progress:
    """Return the progress of a row."""
    return Progress(**columns)


def speed_of(columns: Mapping[str, Any]) -> Speed:
    """Return the speed of a row."""
    return Speed(**{**columns, "gpu": GpuModel(columns["gpu"])})


def row(progress: Progress | Speed) -> dict[str, Any]:
    """Return the columns of a progress or a speed."""
    return dataclasses.asdict(progress)


def start_of(event: Event, lease: Lease | None) -> Start | None:
    """Return the start in an event, or None."""
    if event.kind != RUNNING or lease is None:
        return None
    return Start(lease.lease_id, lease.market, event.at, max((event.at - lease.opened_at).total_seconds(), 0.0))


def first_runs(since: datetime) -> Query:
    """Return the query for the first run, since an instant, of each lease: (lease_id, market, opened_at, at)."""
    events, leases = schema.events, schema.leases
    return (
        sa.select(leases.c.lease_id, leases.c.market, leases.c.opened_at, sa.func.min(events.c.at).label("at"))
        .join_from(events, leases, events.c.lease_id == leases.c.lease_id)
        .where(events.c.kind == RUNNING, events.c.at >= since)
        .group_by(leases.c.lease_id)
        .order_by(sa.func.min(events.c.at), leases.c.lease_id)
    )
