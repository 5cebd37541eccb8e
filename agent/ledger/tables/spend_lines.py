"""The lines of every report of spend: money, paid time by phase, and lease in one row; and interruptions."""

import datetime as dt
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from agent.domain.record.account import VOLUME, Line, LostWork
from agent.domain.record.shadow_account import Counted
from agent.ledger.tables import schema
from agent.ledger.tables.types import MicroUsd, Query

_TIMES = ("paid", "loading", "restoring", "useful", "lost")
_IS_SAME = sa.and_(
    schema.phases.c.lease_id == schema.spend.c.lease_id,
    schema.phases.c.day == schema.spend.c.day,
    schema.phases.c.tenure == schema.spend.c.tenure,
)


def lines(since: dt.date | None, until: dt.date | None) -> Query:
    """Return the query for lines from day `since` up to but not including `until`, in the order of days."""
    spend, leases, phases = schema.spend, schema.leases, schema.phases
    joined = spend.outerjoin(leases, leases.c.lease_id == spend.c.lease_id).outerjoin(phases, _IS_SAME)
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


def by_day(since: dt.date | None, until: dt.date | None) -> Query:
    """Return the query for the number of lines of each day, the last day first."""
    day = schema.spend.c.day
    query = sa.select(day, sa.func.count().label("lines")).group_by(day).order_by(day.desc())
    query = query if since is None else query.where(day >= since)
    return query if until is None else query.where(day < until)


def line_of(columns: Mapping[str, Any]) -> Line:
    """Return the line of a row; without a lease or phases it has zeros."""
    return Line(**{name: value for name, value in columns.items() if value is not None})


def sums(until: dt.date, since: dt.date | None = None, *, of_leases_only: bool = False) -> Query:
    """Return the query for each workload's figures up to and including a day, since a day or the ledger's beginning.

    `of_leases_only` leaves out network volumes, which no shadow has.
    SQLite adds them up, because reading the lines of a large fleet's year takes seconds.
    """
    spend, phases = schema.spend.c, schema.phases.c
    amount = sa.func.sum(spend.gpu + spend.disk + spend.traffic, type_=MicroUsd)
    times = [sa.func.coalesce(sa.func.sum(phases[name]), 0).label(name) for name in ("paid", "useful", "lost")]
    query = sa.select(spend.workload, amount.label("spent"), *times).where(spend.day <= until)
    query = query if since is None else query.where(spend.day >= since)
    query = query.where(spend.lease_id.not_like(VOLUME + "%")) if of_leases_only else query
    return query.select_from(schema.spend.outerjoin(schema.phases, _IS_SAME)).group_by(spend.workload)


def counted_of(columns: Mapping[str, Any]) -> Counted:
    """Return the workload's figures in a row."""
    return Counted(**{name: columns[name] for name in ("spent", "paid", "useful", "lost")})


def lost_work(since: dt.datetime | None, until: dt.datetime | None) -> Query:
    """Return the query for the time that interruptions wasted, from `since` up to but not at `until`."""
    table = schema.losses
    query = sa.select(table).order_by(table.c.at)
    query = query if since is None else query.where(table.c.at >= since)
    return query if until is None else query.where(table.c.at < until)


def lost_work_of(columns: Mapping[str, Any]) -> LostWork:
    """Return the time that an interruption wasted, from a row."""
    return LostWork(columns["lease_id"], columns["at"], columns["cause"], columns["lost"], bool(columns["is_measured"]))
