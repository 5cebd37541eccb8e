"""After a restart or a time without listings: reads each market's own record since the last listing."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from agent.domain.record.lease import Lease
from agent.observe.poller import Poller

DARK = timedelta(seconds=90)
"""Two listings further apart than this leave a gap, for which the market's own record is read."""
MOST = timedelta(days=7)
"""How far back the record is read: markets keep it for days."""


async def recall(pollers: Iterable[Poller], last_listed: Mapping[str, datetime], leases: Iterable[Lease]) -> None:
    """Read what markets recorded about `leases` while they were not listed; `last_listed` is empty after a restart."""
    recalled = list(leases)
    for poller in pollers:
        listed_at = poller.view.listed_at
        if not poller.view.is_fresh or listed_at is None:
            continue
        last = last_listed.get(poller.market.name)
        known = [lease.accrued_until for lease in recalled if lease.market == poller.market.name and lease.is_open]
        if known and (last is None or listed_at - last > DARK):
            await poller.recall(max(min(known), listed_at - MOST))
