"""Paid time by phase, lease, UTC day and tenure, and the time that each interruption wasted."""

import datetime as dt
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa

from agent.domain.market.interruption import Cause
from agent.domain.market.tenure import Tenure
from agent.domain.record.paid_time import Phases
from agent.ledger import portable
from agent.ledger.tables import schema

_ADDENDS = ("paid", "loading", "restoring", "useful", "lost", "paused_disk")


ADDED = portable.added(schema.phases, _ADDENDS)


def _moved(source: str, target: str) -> sa.Update:
    """Return the statement that moves time from one phase to another, at most all of it."""
    table = schema.phases
    # All old values are read before new ones are written, so both columns use the same amount.
    amount = portable.least(sa.bindparam("micros", type_=sa.Integer), table.c[source])
    return (
        sa.update(table)
        .where(table.c.lease_id == sa.bindparam("this_lease"))
        .where(table.c.day == sa.bindparam("this_day"))
        .where(table.c.tenure == sa.bindparam("this_tenure"))
        .values({source: table.c[source] - amount, target: table.c[target] + amount})
    )


SPOILED = _moved("useful", "lost")
REDEEMED = _moved("restoring", "useful")
FINISHED = _moved("lost", "useful")
NO_LOSS = sa.delete(schema.losses).where(
    schema.losses.c.lease_id == sa.bindparam("this_lease"), schema.losses.c.at == sa.bindparam("this_time")
)
LOST = portable.stored(schema.losses)


def row(tenure: Tenure, part: Phases) -> dict[str, Any]:
    """Return the columns of an addition."""
    return {
        "lease_id": part.lease_id,
        "day": part.day,
        "tenure": tenure,
        "paid": part.paid,
        "loading": part.loading,
        "restoring": part.restoring,
        "useful": part.useful,
        "lost": 0,
        "paused_disk": part.paused_disk,
    }


def moves(tenure: Tenure, part: Phases) -> Iterator[tuple[sa.Update, dict[str, Any]]]:
    """Yield the statements that move time between phases, each with its columns."""
    key = {"this_lease": part.lease_id, "this_day": part.day, "this_tenure": tenure}
    for statement, micros in ((REDEEMED, part.redeemed), (SPOILED, part.spoiled), (FINISHED, part.finished)):
        if micros:
            yield statement, {**key, "micros": micros}


def loss(lease_id: str, at: dt.datetime, cause: Cause, lost: int, *, is_measured: bool) -> dict[str, Any]:
    """Return the columns of the time that an interruption wasted."""
    return {"lease_id": lease_id, "at": at, "cause": cause, "lost": lost, "is_measured": is_measured}
