"""Records what a pass observed and no fact of a lease or an intent says, in one transaction."""

from agent.decide import first_sights
from agent.decide.deadline import availability, reference_speed
from agent.decide.service import warm_record
from agent.domain.fleet import Fleet
from agent.ledger.store import Ledger


async def keep(ledger: Ledger, before: Fleet, after: Fleet) -> None:
    """Record what changed: capacity and the reference's DLPerf by searches, warm time, and when workloads came.

    Raises:
        LedgerError: nothing was written.
    """
    recorded = ledger.recollection()
    observations = availability.news(before.capacity, after.capacity)
    warm = warm_record.news(before.warm, after.warm)
    dlperf = reference_speed.news(recorded.dlperf, after)
    sights = first_sights.news(recorded.first_seen, after.known_since)
    if not (observations or warm or dlperf or sights):
        return
    async with ledger.transaction() as tx:
        for name, at in sights.items():
            tx.keep_first_sight(name, at)
        for time in warm:
            tx.keep_warm(time)
        for slice_, figure in dlperf.items():
            tx.keep_dlperf(slice_, figure)
        for known in observations:
            tx.keep_capacity(known)
        gone = availability.surplus(recorded.capacity, observations)
        tx.forget_learned((each.market, each.pool) for each in gone)
