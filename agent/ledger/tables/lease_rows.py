"""The conversion of leases between the domain and their table."""

from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa

from agent.domain.record.guard_run import GuardRun
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.slot import Slot
from agent.ledger import portable
from agent.ledger.tables import schema
from agent.ledger.tables.types import MicroUsd, Query

_FIELDS = tuple(name for name in Lease.__struct_fields__ if name != "slot")

OPENED = sa.insert(schema.leases)
UPDATED = sa.update(schema.leases).where(schema.leases.c.lease_id == sa.bindparam("this_lease"))
OPEN = sa.select(schema.leases).where(schema.leases.c.state != LeaseState.ENDED)

LAST_ENDED = portable.with_largest(
    sa.select(schema.leases.c.workload, schema.leases.c.slot, schema.leases.c.market).where(
        schema.leases.c.ended_at.is_not(None), schema.leases.c.has_run == sa.literal_column("1")
    ),
    schema.leases.c.ended_at,
    by=(schema.leases.c.workload, schema.leases.c.slot),
)

RAN = (
    sa.select(schema.leases.c.workload, sa.func.sum(schema.leases.c.ran_micros).label("ran_micros"))
    .where(schema.leases.c.state == LeaseState.ENDED)
    .group_by(schema.leases.c.workload)
)

_AMOUNT = sa.func.sum(schema.spend.c.gpu + schema.spend.c.disk + schema.spend.c.traffic, type_=MicroUsd)
BY_SLOT = (
    sa.select(
        schema.leases.c.workload,
        schema.leases.c.slot,
        sa.func.min(schema.leases.c.opened_at).label("began_at"),
        _AMOUNT.label("spent"),
    )
    .select_from(schema.leases.outerjoin(schema.spend, schema.spend.c.lease_id == schema.leases.c.lease_id))
    .group_by(schema.leases.c.workload, schema.leases.c.slot)
)


def row(lease: Lease) -> dict[str, Any]:
    """Return the columns of a lease."""
    columns = {name: getattr(lease, name) for name in _FIELDS}
    return columns | {"workload": lease.slot.workload, "slot": lease.slot.index}


def lease_of(columns: Mapping[str, Any]) -> Lease:
    """Return the lease of a row."""
    return Lease(slot=Slot(columns["workload"], columns["slot"]), **{name: columns[name] for name in _FIELDS})


def of_run(run: GuardRun) -> Query:
    """Return the query for one lease of a run, open or ended; leases do not keep a name from before a rename."""
    table = schema.leases
    slots = table.c.workload.in_({run.slot.workload, run.name}), table.c.slot == run.slot.index
    return sa.select(table).where(*slots, table.c.guard_run == run.run).limit(1)


def instances(market: str) -> Query:
    """Return the query for the ids of a market's instances, each once."""
    table = schema.leases
    return sa.select(table.c.instance_id).where(table.c.market == market).distinct()


def newest(limit: int, instances: Collection[str] | None = None, ids: Collection[str] | None = None) -> Query:
    """Return the query for leases in any state, the last opened first; if instances or ids are named, only those."""
    table = schema.leases
    query = sa.select(table).order_by(table.c.opened_at.desc(), table.c.lease_id).limit(limit)
    query = query if ids is None else query.where(table.c.lease_id.in_(ids))
    return query if instances is None else query.where(table.c.instance_id.in_(instances))
