"""How low the limit of a running lease may be, where a cap of the rate counts more than the lease costs.

A pause by a cap ends the run for certain. A limit over the present price ends it only if the price rises, with the
market's notice, and the bid then waits in the auctions. So a margin of one cent over the price is enough; at the price
itself an earlier bid wins the tie. A limit is lowered no further than a cap needs. A bid that does not run is only set
back to our own limit, if a higher one is listed.

Invariant: a lease whose limit cannot be changed now, or was refused a lower one, has no lowest limit: it is paused.
"""

from collections.abc import Iterator

from agent.decide.limits import limits, unsafe_writes
from agent.decide.pricing import cooldowns
from agent.decide.pricing.value_limit import CENT
from agent.domain.fleet import Fleet
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Bills, Lease, LeaseState
from agent.domain.record.tally import Counted
from agent.domain.work.decision import Reason, Rebid

MARGIN = CENT
"""The distance of the lowest limit from the present price."""


def lowest(fleet: Fleet) -> dict[str, UsdPerHour]:
    """Return the lowest useful limit of each lease whose limit may be lowered now, by its id."""
    return {lease.lease_id: limit for lease, limit in _lowest(fleet)}


def _lowest(fleet: Fleet) -> Iterator[tuple[Lease, UsdPerHour]]:
    for lease in fleet.leases:
        if lease.bid_limit is None or lease.is_held:
            continue
        limit = _least(lease)
        if limit < lease.bid_limit and _may_be_lowered(lease, limit, fleet):
            yield lease, limit


def _least(lease: Lease) -> UsdPerHour:
    if not _runs_on(lease):
        return lease.own_bid
    return UsdPerHour(-(-lease.gpu_rate.micros // CENT.micros) * CENT.micros) + MARGIN


def _runs_on(lease: Lease) -> bool:
    """Return whether a lease runs and its market has not said that it ends it."""
    is_running = lease.state is LeaseState.RUNNING and lease.bills is Bills.GPU_AND_DISK
    return is_running and lease.notice_at is None


def _may_be_lowered(lease: Lease, limit: UsdPerHour, fleet: Fleet) -> bool:
    view, work = fleet.markets.get(lease.market), fleet.workload(lease.slot.workload)
    if view is None or work is None or not view.is_fresh or limits.unpaid(view) is not None:
        return False
    if any(intent.is_open and intent.slot == lease.slot for intent in fleet.intents):
        return False
    refused = (tally for tally in fleet.tallies if tally.counted is Counted.UNTAKEN and tally.of == lease.lease_id)
    if any(tally.where == cooldowns.LOWER and not tally.is_over(fleet.now) for tally in refused):
        return False
    return unsafe_writes.strike(Rebid(lease, limit, Reason("", "")), fleet) is None
