"""A lost lease on a market that keeps nothing of it: there is no disk to go back to, so it is released at once."""

from collections.abc import Iterator

from agent.domain.fleet import Fleet
from agent.domain.market.market_rules import Survives
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.work.decision import Reason, Release
from agent.domain.work.only_copy import may_leave

CODE = "nothing_left"


def releases(fleet: Fleet) -> Iterator[Release]:
    """Yield the releases of lost leases of which nothing is left."""
    for lease in fleet.leases:
        reason = _reason(fleet, lease) if lease.is_open and not lease.is_held else None
        if reason is not None:
            yield Release(lease, reason)


def _reason(fleet: Fleet, lease: Lease) -> Reason | None:
    """Return why a lost lease is released, or None if its market keeps its disk or may have its only checkpoint."""
    is_lost = lease.interrupted_by is not None and lease.state in {LeaseState.PAUSED, LeaseState.OFFLINE}
    if not is_lost or not fleet.is_seen(lease) or fleet.rules_of(lease.market).survives is not Survives.NOTHING:
        return None
    work = fleet.workload(lease.slot.workload)
    if lease.bills is not Bills.NOTHING and (work is None or not may_leave(lease, work)):
        return None
    return Reason(CODE, f"{lease.market} keeps nothing of a lost instance, so its lease ends")
