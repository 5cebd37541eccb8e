"""Price history, stored by change and rolled up to hours.

1. A sample is kept only if ask or floor of (market, host, gpus) differ from the last kept one. If a host offers two
   slices of one size, only the cheaper one counts; otherwise the two would alternate and every sight would be a change.
2. Raw samples older than `RAW_DAYS` become hours of (market, model, gpus). Sums are kept, so that means merge exactly.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from agent.domain.market.gpu import GpuModel
from agent.domain.market.price import PriceHour, PriceSample, PriceSpan
from agent.domain.money import UsdPerHour
from agent.ledger.tables import schema
from agent.ledger.tables.types import CleanText, MicroUsdPerHour, Query, UtcMicros

RAW_DAYS = 14
"""Two weeks have each weekday twice. Older prices are only needed by model and hour, not by host."""

Key = tuple[str, str, int]
Pair = tuple[UsdPerHour | None, UsdPerHour | None]
_FIELDS = ("at", "market", "host_id", "gpu", "gpus", "ask", "floor")

OBSERVED = sa.text("""
    INSERT OR REPLACE INTO prices (market, host_id, gpus, at, gpu, ask, floor)
    SELECT :market, :host_id, :gpus, :at, :gpu, :ask, :floor
    WHERE NOT EXISTS (
        SELECT 1 FROM (
            SELECT ask, floor FROM prices
            WHERE market = :market AND host_id = :host_id AND gpus = :gpus ORDER BY at DESC LIMIT 1
        ) AS last WHERE last.ask IS :ask AND last.floor IS :floor
    )
""").bindparams(
    sa.bindparam("market", type_=CleanText),
    sa.bindparam("host_id", type_=CleanText),
    sa.bindparam("gpus", type_=sa.Integer),
    sa.bindparam("at", type_=UtcMicros),
    sa.bindparam("gpu", type_=CleanText),
    sa.bindparam("ask", type_=MicroUsdPerHour),
    sa.bindparam("floor", type_=MicroUsdPerHour),
)

ROLLED_UP = sa.text("""
    INSERT INTO price_rollups
        (market, gpu, gpus, hour, asks, ask_sum, ask_min, ask_max, floors, floor_sum, floor_min, floor_max)
    SELECT market, gpu, gpus, at / 3600000000,
        count(ask), coalesce(sum(ask), 0), min(ask), max(ask),
        count(floor), coalesce(sum(floor), 0), min(floor), max(floor)
    FROM prices WHERE at < :before GROUP BY 1, 2, 3, 4
    ON CONFLICT (market, gpu, gpus, hour) DO UPDATE SET
        asks = asks + excluded.asks, ask_sum = ask_sum + excluded.ask_sum,
        ask_min = coalesce(min(ask_min, excluded.ask_min), ask_min, excluded.ask_min),
        ask_max = coalesce(max(ask_max, excluded.ask_max), ask_max, excluded.ask_max),
        floors = floors + excluded.floors, floor_sum = floor_sum + excluded.floor_sum,
        floor_min = coalesce(min(floor_min, excluded.floor_min), floor_min, excluded.floor_min),
        floor_max = coalesce(max(floor_max, excluded.floor_max), floor_max, excluded.floor_max)
""").bindparams(sa.bindparam("before", type_=UtcMicros))

PRUNED = sa.delete(schema.prices).where(schema.prices.c.at < sa.bindparam("before"))


def row(sample: PriceSample) -> dict[str, Any]:
    """Return the columns of a sample."""
    return {name: getattr(sample, name) for name in _FIELDS}


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
    at = sa.type_coerce(table.c.at, sa.Integer) // sa.literal_column("3600000000")
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
