"""Our own record of hosts."""

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from agent.domain.market import host as hosts_domain
from agent.domain.market.host import HostRecord
from agent.domain.market.outbids import NO_OUTBIDS, STEPS, Outbids
from agent.ledger import portable
from agent.ledger.tables import schema

HOST_STORED = portable.stored(schema.hosts)
HOSTS = sa.select(schema.hosts)
HOST_FORGOTTEN = sa.delete(schema.hosts).where(
    schema.hosts.c.market == sa.bindparam("this_market"), schema.hosts.c.host_id == sa.bindparam("this_host")
)


@dataclasses.dataclass(frozen=True, slots=True)
class Exposure:
    """An addition to the record of a host; an empty `owner_id` keeps the known one."""

    market: str
    host_id: str
    at: datetime
    owner_id: str = ""
    running_seconds: float = 0.0
    interruptions: int = 0
    starts_ok: int = 0
    starts_failed: int = 0
    market_losses: int = 0
    bid_seconds: float = 0.0
    loaded_gb: float = 0.0
    loading_seconds: float = 0.0
    displaced: int = 0
    outbids: Outbids = NO_OUTBIDS
    weighed_hours: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether it adds nothing."""
        return not (
            self.running_seconds or self.interruptions or self.starts_ok or self.starts_failed or self.loaded_gb
        )


def exposed(record: HostRecord, more: Exposure) -> HostRecord:
    """Return the record decayed to the exposure's time, with the exposure added."""
    added = HostRecord(
        record.market,
        record.host_id,
        running_seconds=more.running_seconds,
        interruptions=more.interruptions,
        starts_ok=more.starts_ok,
        starts_failed=more.starts_failed,
        market_losses=more.market_losses,
        bid_seconds=more.bid_seconds,
        loaded_gb=more.loaded_gb,
        loading_seconds=more.loading_seconds,
        displaced=more.displaced,
        outbids=more.outbids,
        weighed_hours=more.weighed_hours,
    )
    exposed_record = hosts_domain.exposed(record, added, more.at)
    return msgspec.structs.replace(exposed_record, owner_id=more.owner_id or record.owner_id)


def named(place: tuple[str, str]) -> dict[str, str]:
    """Return the parameters that name a host, from its market and id."""
    return {"this_market": place[0], "this_host": place[1]}


def host_row(record: HostRecord) -> dict[str, Any]:
    """Return the columns of a host's record."""
    columns = {field: getattr(record, field) for field in record.__struct_fields__}
    return {**columns, "outbids": {"steps": STEPS, **msgspec.to_builtins(record.outbids)}}


def host_of(columns: Mapping[str, Any]) -> HostRecord:
    """Return the host's record of a row."""
    return HostRecord(**{**columns, "outbids": _outbids(columns["outbids"])})


def _outbids(kept: Mapping[str, Any]) -> Outbids:
    """Return the counts. Counts by other steps are dropped, and counting begins again."""
    if tuple(kept["steps"]) != STEPS:
        return NO_OUTBIDS
    return Outbids(tuple(kept["ours"]), tuple(kept["rivals"]))
