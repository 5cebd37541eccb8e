"""Proof by two looks that an instance is ours, for a person's order that cannot wait for the next cycle (rule 18)."""

from collections.abc import Callable
from datetime import datetime

import structlog
from msgspec.structs import replace

from agent.decide.reconcile import ownership
from agent.domain.record.lease import Lease
from agent.ledger.ledger_errors import LedgerError
from agent.ledger.store import Ledger
from agent.markets import labels, market_errors, port

log = structlog.get_logger("gpubid.ownership_proof")

LOOKS = 2


async def prove(ledger: Ledger, market: port.Market, lease: Lease, now: Callable[[], datetime]) -> Lease | None:
    """Return the lease with its proof, or None if a request for its id fails or does not show our label."""
    for _ in range(LOOKS):
        try:
            row = await market.instance(lease.instance_id)
        except market_errors.MarketError as error:
            log.warning("label.unread", lease=lease.lease_id, code=error.code)
            return None
        if row.instance_id != lease.instance_id:
            return None
        if not ownership.is_label_of(labels.parse(row.label), lease, ledger.fleet_id):
            return None
    proven = replace(lease, proven_at=now())
    try:
        async with ledger.transaction() as tx:
            tx.update_lease(proven)
    except LedgerError as error:
        log.error("proof.unwritten", lease=lease.lease_id, reason=str(error))
    return proven
