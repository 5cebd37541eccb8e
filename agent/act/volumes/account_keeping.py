"""Records what a pass knows of money besides leases: credits of markets, and the cost of network volumes."""

from collections.abc import Iterable
from datetime import datetime

from agent.decide.accounting import volume_metering
from agent.domain.fleet import Fleet, MarketView
from agent.domain.market.credit import Credit
from agent.domain.market.tenure import Tenure
from agent.domain.record.account import VOLUME
from agent.domain.work.workload import Workload
from agent.ledger.store import Ledger
from agent.ledger.tables.spend_rows import SpendEntry


async def keep(ledger: Ledger, fleet: Fleet) -> None:
    """Record changed credits, and the cost of volumes up to now. A clock off a market's meters no volume.

    Raises:
        LedgerError: nothing was written.
    """
    await _keep_credit(ledger, fleet.markets.values(), fleet.now)
    if not any(view.is_skewed for view in fleet.markets.values()):
        await _meter_volumes(ledger, fleet.workloads, fleet.now)


async def _keep_credit(ledger: Ledger, views: Iterable[MarketView], now: datetime) -> None:
    """Record each market's changed credit, for programs that only read the ledger and for the next start.

    A sudden fall is recorded once it is confirmed.

    Raises:
        LedgerError: nothing was written.
    """
    known = ledger.recollection(now).credits
    fresh = [view for view in views if view.is_fresh and view.account_id and view.credit_before_fall is None]
    changed = [view for view in fresh if view.market not in known or known[view.market].amount != view.credit]
    if changed:
        async with ledger.transaction() as tx:
            for view in changed:
                tx.note_credit(view.market, Credit(view.credit, now))


async def _meter_volumes(ledger: Ledger, workloads: Iterable[Workload], now: datetime) -> None:
    """Record the cost of network volumes up to `now`, by the price and the workloads of that time."""
    known = ledger.recollection(now).volumes
    turned = volume_metering.turned(known, workloads, now)
    if not turned:
        return
    async with ledger.transaction() as tx:
        for volume in turned:
            for share in volume_metering.shares(known[volume.name], volume.until) if volume.name in known else ():
                tx.add_spend(_entry(share))
            tx.keep_volume(volume)


def _entry(share: volume_metering.Share) -> SpendEntry:
    # The ledger has one row of spend a lease and day, so each workload's part has a name of its own.
    name = f"{VOLUME}{share.volume}:{share.workload}"
    return SpendEntry(name, share.workload, share.market, Tenure.ON_DEMAND, share.day, disk=share.amount)
