"""The conversion of the known capacity of pools between the domain and its table."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa

from agent.domain.market.capacity import Capacity, Counts
from agent.ledger import portable
from agent.ledger.tables import schema

POOLS = sa.select(schema.capacity)
SEEN = portable.stored(schema.capacity)
FORGOTTEN = sa.delete(schema.capacity).where(
    schema.capacity.c.market == sa.bindparam("this_market"), schema.capacity.c.pool == sa.bindparam("this_pool")
)


def row(known: Capacity) -> dict[str, Any]:
    """Return the columns of the knowledge of a pool."""
    columns = {field.name: getattr(known, field.name) for field in dataclasses.fields(known)}
    return {**columns, "there": msgspec.to_builtins(known.there), "away": msgspec.to_builtins(known.away)}


def named(place: tuple[str, str]) -> dict[str, str]:
    """Return the parameters that name a pool, from its market and name."""
    return {"this_market": place[0], "this_pool": place[1]}


def capacity_of(columns: Mapping[str, Any]) -> Capacity:
    """Return the knowledge of a pool in a row."""
    counts = {name: _counts(columns[name]) for name in ("there", "away")}
    return Capacity(**{**columns, **counts, "evidence": tuple(columns["evidence"])})


def _counts(held: Mapping[str, Any]) -> Counts:
    return Counts(tuple(held["ends"]), tuple(held["hours"]))
