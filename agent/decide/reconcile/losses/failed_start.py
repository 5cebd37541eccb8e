"""The failed first start of a lease, as its row shows it."""

from datetime import timedelta

from agent.domain.market.instance import Instance, InstanceState
from agent.domain.record.lease import Lease

SHOWN_FOR = timedelta(minutes=1)
"""How long listings must show the failed start of a bid before the bid is given up."""


def is_shown(lease: Lease, row: Instance) -> bool:
    """Return whether a lease that never ran is listed as failed."""
    return row.state is InstanceState.FAILED and not lease.has_run


def is_unmade(row: Instance) -> bool:
    """Return whether there was no capacity for it, so that there is nothing to read back and nothing that bills."""
    return row.is_out_of_capacity and row.state is InstanceState.FAILED and not row.may_bill_gpu


def is_of_bid(lease: Lease, row: Instance) -> bool:
    """Return whether a bid that waited for an auction got a machine that failed, which is not recorded yet."""
    return lease.bid_limit is not None and is_shown(lease, row) and not lease.has_failed
