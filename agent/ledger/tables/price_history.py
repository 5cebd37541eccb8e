"""Price history, stored by change and rolled up to hours.

1. A sample is kept only if ask or floor of (market, host, gpus) differ from the last kept one. If a host offers two
   slices of one size, only the cheaper one counts; otherwise the two would alternate and every sight would be a change.
2. Raw samples older than `RAW_DAYS` become hours of (market, model, gpus). Sums are kept, so that means merge exactly.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite

from agent.domain.market.gpu import GpuModel
from agent.domain.market.price import PriceHour, PriceSample, PriceSpan
from agent.domain.money import UsdPerHour
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import Query, UtcMicros

RAW_DAYS = 14
"""Two weeks have each weekday twice. Older prices are only needed by model and hour, not by host."""

Key = tuple[str, str, int]
Pair = tuple[UsdPerHour | None, UsdPerHour | None]
_FIELDS = ("at", "market", "host_id", "gpu", "gpus", "ask", "floor")


def _observed() -> sqlite.Insert:
    """Return the statement that stores a sample unless the slice's last one has the same prices."""
    table = schema.prices
    new = {name: sa.bindparam(f"this_{name}", type_=table.c[name].type) for name in _FIELDS}
    is_slice = (table.c[name] == new[name] for name in ("market", "host_id", "gpus"))
    last = sa.select(table.c.ask, table.c.floor).where(*is_slice).order_by(table.c.at.desc()).limit(1).subquery("last")
    is_same = (last.c[name].is_not_distinct_from(new[name]) for name in ("ask", "floor"))
    changed = sa.select(*new.values()).where(
        ~sa.exists(sa.select(sa.literal_column("1")).select_from(last).where(*is_same))
    )
    statement = sqlite.insert(table).from_select(_FIELDS, changed)
    others = {name: statement.excluded[name] for name in ("gpu", "ask", "floor")}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key.columns), set_=others)


def _rolled_up() -> sqlite.Insert:
    """Return the statement that adds the samples before an instant to their hours."""
    table, into = schema.prices.c, schema.price_rollups
    hour = sa.type_coerce(table.at, sa.Integer) // sa.literal_column("3600000000", sa.Integer)
    by = [table.market, table.gpu, table.gpus, hour]
    figures = [
        function
        for column in (table.ask, table.floor)
        for plain in [sa.type_coerce(column, sa.Integer)]
        for function in (
            sa.func.count(plain),
            sa.func.coalesce(sa.func.sum(plain), 0),
            sa.func.min(plain),
            sa.func.max(plain),
        )
    ]
    old = sa.select(*by, *figures).where(table.at < sa.bindparam("before", type_=UtcMicros)).group_by(*by)
    statement = sqlite.insert(into).from_select([column.name for column in into.columns], old)
    new = statement.excluded
    merged: dict[str, sa.ColumnElement[Any]] = {
        name: into.c[name] + new[name] for name in ("asks", "ask_sum", "floors", "floor_sum")
    }
    for name, either in [
        ("ask_min", portable.least),
        ("floor_min", portable.least),
        ("ask_max", portable.greatest),
        ("floor_max", portable.greatest),
    ]:
        merged[name] = sa.func.coalesce(either(into.c[name], new[name]), into.c[name], new[name])
    return statement.on_conflict_do_update(index_elements=list(into.primary_key.columns), set_=merged)


OBSERVED = _observed()
ROLLED_UP = _rolled_up()
PRUNED = sa.delete(schema.prices).where(schema.prices.c.at < sa.bindparam("before"))


def row(sample: PriceSample) -> dict[str, Any]:
    """Return the parameters of `OBSERVED` for a sample."""
    return {f"this_{name}": getattr(sample, name) for name in _FIELDS}


def sample_of(columns: Mapping[str, Any]) -> PriceSample:
    """Return the sample of a row."""
    return PriceSample(**{name: columns[name] for name in _FIELDS})


def key_of(sample: PriceSample) -> Key:
    """Return the key within which samples are compared."""
    return (sample.market, sample.host_id, sample.gpus)


def cheapest(samples: Iterable[PriceSample]) -> dict[Key, PriceSample]:
    """Return one sample per key, with the lowest floor, then the lowest ask; unknown prices count as highest."""
    chosen: dict[Key, PriceSample] = {}
    for sample in samples:
        known = chosen.get(key_of(sample))
        if known is None or _dearness(sample) < _dearness(known):
            chosen[key_of(sample)] = sample
    return chosen


def raw_before(now: datetime) -> datetime:
    """Return the full hour before which raw samples become hours."""
    return (now - timedelta(days=RAW_DAYS)).replace(minute=0, second=0, microsecond=0)


def oldest(before: datetime) -> Query:
    """Return the query for the time of the oldest raw sample before an instant."""
    return sa.select(sa.func.min(schema.prices.c.at)).where(schema.prices.c.at < before)


def history(
    market: str | None,
    gpu: GpuModel | None,
    hosts: Collection[str] | None,
    since: datetime | None,
    until: datetime | None,
    limit: int,
) -> Query:
    """Return the query for raw samples, newest first; if hosts are named, only of those."""
    table = schema.prices
    query = sa.select(table).order_by(table.c.at.desc(), table.c.host_id).limit(limit)
    for column, value in ((table.c.market, market), (table.c.gpu, gpu)):
        if value is not None:
            query = query.where(column == value)
    if hosts is not None:
        query = query.where(table.c.host_id.in_(hosts))
    if since is not None:
        query = query.where(table.c.at >= since)
    return query if until is None else query.where(table.c.at < until)


def last_before(leases: Collection[str], before: datetime) -> Query:
    """Return the query for the last raw sample before an instant of the slice of each of these leases.

    Each is found directly by the table's own order.
    """
    of, table = schema.leases, schema.prices
    older = table.alias("older")
    newest = (
        sa.select(sa.func.max(older.c.at))
        .where(*_is_slice_of(older, of), older.c.at < before)
        .correlate(of)
        .scalar_subquery()
    )
    held = sa.and_(*_is_slice_of(table, of), table.c.at == newest)
    return sa.select(table).distinct().select_from(of.join(table, held)).where(of.c.lease_id.in_(leases))


def _is_slice_of(prices: sa.FromClause, leases: sa.FromClause) -> list[sa.ColumnElement[bool]]:
    return [prices.c[name] == leases.c[name] for name in ("market", "host_id", "gpus")]


def asks(models: Collection[str], since: datetime, until: datetime) -> Query:
    """Return the query for the asks of models as whole numbers, each host's one after another, the oldest first.

    The order is the table's own, so nothing is sorted, however many asks there are.
    """
    table = schema.prices
    at = sa.type_coerce(table.c.at, sa.Integer) // sa.literal_column("3600000000", sa.Integer)
    ask = sa.type_coerce(table.c.ask, sa.Integer)
    query = sa.select(table.c.market, table.c.host_id, table.c.gpus, table.c.gpu, at, ask)
    query = query.where(table.c.gpu.in_(models), table.c.at >= since, table.c.at < until)
    return query.order_by(table.c.market, table.c.host_id, table.c.gpus, table.c.at)


def hours(
    market: str | None, gpu: GpuModel | None, since: datetime | None, until: datetime | None, limit: int
) -> Query:
    """Return the query for rolled-up hours, the newest first."""
    table = schema.price_rollups
    query = sa.select(table).order_by(table.c.hour.desc(), table.c.market, table.c.gpu, table.c.gpus).limit(limit)
    for column, value in ((table.c.market, market), (table.c.gpu, gpu)):
        if value is not None:
            query = query.where(column == value)
    if since is not None:
        query = query.where(table.c.hour >= since)
    return query if until is None else query.where(table.c.hour < until)


def hour_of(columns: Mapping[str, Any]) -> PriceHour:
    """Return the hour of a row."""
    return PriceHour(
        hour=columns["hour"],
        market=columns["market"],
        gpu=GpuModel(columns["gpu"]),
        gpus=columns["gpus"],
        ask=_span(columns["asks"], columns["ask_sum"], columns["ask_min"], columns["ask_max"]),
        floor=_span(columns["floors"], columns["floor_sum"], columns["floor_min"], columns["floor_max"]),
    )


def _span(count: int, total: int, least: UsdPerHour | None, most: UsdPerHour | None) -> PriceSpan | None:
    if least is None or most is None:
        return None
    return PriceSpan(count, least, UsdPerHour(round(total / count)), most)


def _dearness(sample: PriceSample) -> tuple[bool, int, bool, int]:
    floor, ask = sample.floor, sample.ask
    return (floor is None, floor.micros if floor else 0, ask is None, ask.micros if ask else 0)
