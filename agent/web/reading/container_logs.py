"""The present output of a container, requested from its market for a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.domain.record.lease import Lease, LeaseState
from agent.markets import market_errors, registered_markets
from agent.markets.port import Market

MOST_LINES = 5_000
NO_LEASE = "no open lease matches {!r}; `gpubid fleet` shows them, and `gpubid logs --previous` the log of an ended one"

NO_LOGS = "{} keeps no log of an instance; write [workloads.{}.guard] with bucket, and the guard keeps the whole output"


def lease_of(slot: str, leases: Sequence[Lease]) -> Lease | None:
    """Return the lease of a slot, or of a workload with one slot. Of two leases, return the running one."""
    mine = [lease for lease in leases if slot in {str(lease.slot), lease.slot.workload, lease.lease_id}]
    running = [lease for lease in mine if lease.state is LeaseState.RUNNING]
    candidates = running or mine
    return candidates[-1] if candidates else None


def none_kept(slot: str, leases: Sequence[Lease]) -> dict[str, Any] | None:
    """Return an `error` with the lease if its market keeps no logs; else None."""
    lease = lease_of(slot, leases)
    if lease is None or registered_markets.keeps_logs(lease.market):
        return None
    sentence = NO_LOGS.format(lease.market, lease.slot.workload)
    return {"error": "no_log", "sentence": sentence, "lease": lease.lease_id}


async def read(slot: str, lines: int, leases: Sequence[Lease], markets: Mapping[str, Market]) -> dict[str, Any]:
    """Return the last lines of a slot's container as JSON, or an `error` with the reason why there are none."""
    lease = lease_of(slot, leases)
    market = markets.get(lease.market) if lease is not None else None
    if lease is None or market is None:
        return {"error": "no_lease", "sentence": NO_LEASE.format(slot)}
    try:
        lines_read = await market.logs(lease.instance_id, min(max(lines, 1), MOST_LINES))
    except market_errors.MarketError as error:
        return {"error": error.code, "sentence": f"the log of {lease.lease_id} cannot be read: {error}"}
    return {"slot": str(lease.slot), "lease": lease.lease_id, "lines": list(lines_read)}
