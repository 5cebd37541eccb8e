"""The conversion of events between the domain and their table."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.domain.market.interruption import Loss
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.slot import Slot
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query

_FIELDS = tuple(field.name for field in dataclasses.fields(Event))

APPENDED = sa.insert(schema.events)
MOST_DIGITS = 9
NO_SLOT = -1
INTERRUPTED = EventKind.LEASE_INTERRUPTED
LAST = sa.select(sa.func.max(schema.events.c.event_id))


def row(event: Event) -> dict[str, Any]:
    """Return the columns of an event; SQLite numbers it."""
    return {name: getattr(event, name) for name in _FIELDS if name != "event_id"}


def event_of(columns: Mapping[str, Any]) -> Event:
    """Return the event of a row."""
    fields: dict[str, Any] = {name: columns[name] for name in _FIELDS}
    fields["kind"] = EventKind(fields["kind"])
    return Event(**fields)


def loss_of(event: Event) -> Loss | None:
    """Return the loss in an event, or None."""
    if event.kind != INTERRUPTED or event.slot is None:
        return None
    return Loss(event.at, Slot(event.workload, event.slot), event.market, event.host_id, event.cause)


def between(
    since: datetime | None,
    until: datetime | None,
    workload: str | None,
    kinds: Sequence[str],
    limit: int,
    leases: Collection[str] | None = None,
    market: str | None = None,
) -> Query:
    """Return the query for the last `limit` events from `since` up to but not at `until`, the newest first.

    `workload` is a name, or NAME/SLOT for one slot.
    """
    table = schema.events
    query = sa.select(table).order_by(table.c.at.desc(), table.c.event_id.desc()).limit(limit)
    if since is not None:
        query = query.where(table.c.at >= since)
    if until is not None:
        query = query.where(table.c.at < until)
    if workload is not None:
        name, _, index = workload.partition("/")
        query = query.where(table.c.workload == name)
        query = query.where(table.c.slot == _number(index)) if index.isdecimal() else query
    if leases is not None:
        query = query.where(table.c.lease_id.in_(leases))
    if market is not None:
        query = query.where(table.c.market == market)
    if kinds:
        query = query.where(table.c.kind.in_(kinds))
    return query


def _number(index: str) -> int:
    """Return the number of a slot, or one that no slot has, since Python and SQLite limit the digits."""
    return int(index) if len(index) <= MOST_DIGITS else NO_SLOT


def of_slots(slots: Collection[Slot], kinds: Collection[str], since: datetime, limit: int) -> Query:
    """Return the query for the last `limit` events of these kinds of these slots, the newest first.

    Slots between two of these are read too, since the slots of one screen are neighbours.
    """
    table = schema.events
    numbers: dict[str, list[int]] = {}
    for place in slots:
        numbers.setdefault(place.workload, []).append(place.index)
    parts = [
        sa.and_(table.c.workload == workload, table.c.slot.between(min(found), max(found)))
        for workload, found in numbers.items()
    ]
    query = sa.select(table).where(sa.or_(sa.false(), *parts), table.c.at >= since, table.c.kind.in_(kinds))
    return query.order_by(table.c.at.desc(), table.c.event_id.desc()).limit(limit)


def last_before(leases: Collection[str], kinds: Collection[str], before: datetime) -> Query:
    """Return the query for each of these leases' last event of these kinds before an instant.

    Each is found directly by its index. A grouping would read all its events.
    """
    table, of = schema.events, schema.leases
    each = table.alias("each")
    newest = (
        sa.select(each.c.event_id)
        .where(each.c.lease_id == of.c.lease_id, each.c.at < before, each.c.kind.in_(kinds))
        .order_by(each.c.at.desc(), each.c.event_id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return sa.select(table).where(table.c.event_id.in_(sa.select(newest).where(of.c.lease_id.in_(leases))))


def count(kind: str, workload: str, since: datetime, until: datetime) -> Query:
    """Return the query for the number of a workload's events of a kind, from `since` to `until`, both included."""
    table = schema.events.c
    where = (table.workload == workload, table.at >= since, table.at <= until, table.kind == kind)
    return sa.select(sa.func.count()).select_from(schema.events).where(*where)


def after(event_id: int, limit: int) -> Query:
    """Return the query for events written after one, the oldest first."""
    table = schema.events
    return sa.select(table).where(table.c.event_id > event_id).order_by(table.c.event_id).limit(limit)
