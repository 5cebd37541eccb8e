"""Spend by lease, UTC day and tenure."""

import datetime as dt
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa

from agent.domain.market.tenure import Tenure
from agent.domain.money import ZERO, Usd
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import MicroUsd, Query

_AMOUNT = sa.func.sum(schema.spend.c.gpu + schema.spend.c.disk + schema.spend.c.traffic, type_=MicroUsd)
MONTH_SEED = "before-this-ledger"
"""The lease id of the market's own charges of this month, if the ledger is new or restored."""
_ADDENDS = ("gpu", "disk", "traffic", "running_seconds", "useful_seconds")


@dataclass(frozen=True, slots=True)
class SpendEntry:
    """An addition to the cost of one lease on one UTC day."""

    lease_id: str
    workload: str
    market: str
    tenure: Tenure
    day: dt.date
    gpu: Usd = ZERO
    disk: Usd = ZERO
    traffic: Usd = ZERO
    running_seconds: float = 0.0
    useful_seconds: float = 0.0

    @property
    def amount(self) -> Usd:
        """GPU, disk and traffic together."""
        return self.gpu + self.disk + self.traffic

    @property
    def is_empty(self) -> bool:
        """Whether it adds nothing."""
        return self.amount == ZERO and not self.running_seconds and not self.useful_seconds


class SpendKey(Enum):
    """The groupings of spend."""

    DAY = "day"
    MONTH = "month"
    WORKLOAD = "workload"
    LEASE = "lease"


@dataclass(frozen=True, slots=True)
class SpendLine:
    """A sum of spend: `key` is a day, a month, a workload or a lease."""

    key: str
    gpu: Usd
    disk: Usd
    traffic: Usd
    running_seconds: float
    useful_seconds: float

    @property
    def amount(self) -> Usd:
        """GPU, disk and traffic together."""
        return self.gpu + self.disk + self.traffic


ADDED = portable.added(schema.spend, _ADDENDS)
LAST_DAY = sa.select(sa.func.max(schema.spend.c.day))


def row(entry: SpendEntry) -> dict[str, Any]:
    """Return the columns of an entry."""
    return {column.name: getattr(entry, column.name) for column in schema.spend.columns}


def daily(since: dt.date) -> Query:
    """Return the query for the spend of each workload on each market on each day from `since` on."""
    table = schema.spend.c
    return (
        sa.select(table.day, table.workload, table.market, _AMOUNT.label("amount"))
        .where(table.day >= since)
        .group_by(table.day, table.workload, table.market)
    )


def ever() -> Query:
    """Return the query for the spend of each workload on each market since the ledger began."""
    table = schema.spend.c
    return sa.select(table.workload, table.market, _AMOUNT.label("amount")).group_by(table.workload, table.market)


@functools.lru_cache(maxsize=64)
def summed(key: SpendKey, since: dt.date | None, until: dt.date | None) -> Query:
    """Return the cached query for sums of spend from day `since` up to but not on `until`; building it takes time."""
    table = schema.spend.c
    columns: dict[SpendKey, sa.ColumnElement[str]] = {
        SpendKey.DAY: sa.type_coerce(table.day, sa.Text),
        SpendKey.MONTH: sa.func.substr(
            sa.type_coerce(table.day, sa.Text), sa.literal_column("1"), sa.literal_column("7")
        ),
        SpendKey.WORKLOAD: sa.type_coerce(table.workload, sa.Text),
        SpendKey.LEASE: table.lease_id,
    }
    by = columns[key].label("key")
    sums = [sa.func.sum(table[name], type_=table[name].type).label(name) for name in _ADDENDS]
    query = sa.select(by, *sums).group_by(by).order_by(by)
    if since is not None:
        query = query.where(table.day >= since)
    if until is not None:
        query = query.where(table.day < until)
    return query


def line_of(columns: Mapping[str, Any]) -> SpendLine:
    """Return the line of a row."""
    return SpendLine(key=columns["key"], **{name: columns[name] for name in _ADDENDS})
