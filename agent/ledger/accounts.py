"""The lines of every report of spend: money, time by phase and lease in one row, and what interruptions took."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from agent.domain.account import Line, Taken
from agent.ledger import schema
from agent.ledger.types import Query

_TIMES = ("paid", "loading", "restoring", "useful", "lost")


def lines(since: dt.date | None, until: dt.date | None) -> Query:
    """Return the query for lines from day `since` up to but not on `until`, in the order of days."""
    spend, leases, phases = schema.spend, schema.leases, schema.phases
    is_same = sa.and_(
        phases.c.lease_id == spend.c.lease_id, phases.c.day == spend.c.day, phases.c.tenure == spend.c.tenure
    )
    joined = spend.outerjoin(leases, leases.c.lease_id == spend.c.lease_id).outerjoin(phases, is_same)
    query = sa.select(
        spend.c.lease_id,
        spend.c.day,
        spend.c.workload,
        spend.c.market,
        spend.c.tenure,
        spend.c.gpu.label("gpu_spend"),
        spend.c.disk,
        spend.c.traffic,
        *(phases.c[name] for name in (*_TIMES, "paused_disk")),
        *(leases.c[name] for name in ("gpu", "gpus", "dlperf", "opened_at", "ended_at", "ask")),
    ).select_from(joined)
    query = query.order_by(spend.c.day, spend.c.lease_id, spend.c.tenure)
    query = query if since is None else query.where(spend.c.day >= since)
    return query if until is None else query.where(spend.c.day < until)


def line_of(columns: Mapping[str, Any]) -> Line:
    """Return the line of a row; what has no lease or no phases keeps the line's own zeros."""
    return Line(**{name: value for name, value in columns.items() if value is not None})


def taken(since: dt.datetime | None, until: dt.datetime | None) -> Query:
    """Return the query for what interruptions took from `since` up to but not at `until`."""
    table = schema.losses
    query = sa.select(table).order_by(table.c.at)
    query = query if since is None else query.where(table.c.at >= since)
    return query if until is None else query.where(table.c.at < until)


def taken_of(columns: Mapping[str, Any]) -> Taken:
    """Return what a row says that an interruption took."""
    return Taken(columns["lease_id"], columns["at"], columns["cause"], columns["lost"])
