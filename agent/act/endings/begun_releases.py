"""The first record of a release: the lease leaves, whatever its market answers."""

from datetime import datetime

import msgspec

from agent.decide.moves import cooldowns_after_writes
from agent.decide.reconcile import outcomes
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import GONE, Release
from agent.ledger.tables.host_rows import Exposure
from agent.ledger.transaction import Transaction


def begin(tx: Transaction, decision: Release, lease: Lease, now: datetime) -> None:
    """Record that a lease is being released, and begin the cooldowns of its host, whatever the market answers.

    Of a lease that is being released already, only a person's word that nothing is left is new: the tries repeat it.
    """
    if lease.state is LeaseState.RELEASING:
        if decision.reason.code == GONE:
            tx.update_lease(msgspec.structs.replace(lease, end_reason=GONE))
        return
    tx.update_lease(outcomes.leaving(lease, now, decision.reason.code))
    for record in cooldowns_after_writes.after_release(decision, now):
        tx.add_expiring(record)
    if decision.reason.code in cooldowns_after_writes.FAILED_STARTS:
        tx.add_host_exposure(Exposure(lease.market, lease.host_id, starts_failed=1, at=now, owner_id=lease.owner_id))
