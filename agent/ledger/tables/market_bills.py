"""The ledger's own estimate of a market's bill, by instance and UTC day, beside the market's charges."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent.domain.money import Usd
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import MicroUsd, Query


@dataclass(frozen=True, slots=True)
class BillLine:
    """The cost of one instance on one UTC day: our count, and the market's charge (None until it was read)."""

    market: str
    day: dt.date
    instance_id: str
    lease_id: str
    estimate: Usd
    estimated_at: dt.datetime
    charged: Usd | None = None
    charged_at: dt.datetime | None = None


_FIELDS = ("market", "day", "instance_id", "lease_id", "estimate", "estimated_at", "charged", "charged_at")

ESTIMATED = portable.kept(schema.bills)
"""An estimate is never changed, since it proves something only if it was made before the bill was seen."""

CHARGED = (
    sa.update(schema.bills)
    .where(schema.bills.c.market == sa.bindparam("this_market"))
    .where(schema.bills.c.day == sa.bindparam("this_day"))
    .where(schema.bills.c.instance_id == sa.bindparam("this_instance"))
)


def row(line: BillLine) -> dict[str, Any]:
    """Return the columns of a line."""
    return {name: getattr(line, name) for name in _FIELDS}


def line_of(columns: Mapping[str, Any]) -> BillLine:
    """Return the line of a row."""
    return BillLine(**{name: columns[name] for name in _FIELDS})


def between(since: dt.date, until: dt.date) -> Query:
    """Return the query for lines from day `since` up to but not on `until`."""
    table = schema.bills
    query = sa.select(table).where(table.c.day >= since, table.c.day < until)
    return query.order_by(table.c.market, table.c.day, table.c.instance_id)


def counted(market: str, since: dt.date, until: dt.date) -> Query:
    """Return the query for the ledger's count of each instance of a market on each of these days."""
    spend, leases = schema.spend.c, schema.leases.c
    amount = sa.func.sum(spend.gpu + spend.disk + spend.traffic, type_=MicroUsd)
    return (
        sa.select(
            spend.day, leases.instance_id, sa.func.max(leases.lease_id).label("lease_id"), amount.label("estimate")
        )
        .join_from(schema.spend, schema.leases, spend.lease_id == leases.lease_id)
        .where(spend.market == market, spend.day >= since, spend.day < until)
        .group_by(spend.day, leases.instance_id)
    )
