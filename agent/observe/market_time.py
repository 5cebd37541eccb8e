"""The time in a market's answers, asked for twice if it is far off: one wrong answer sets no clock."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from agent.clock import CLOSE, SteadyClock
from agent.domain.market.instance import Instance
from agent.markets import port


async def listing(market: port.Market, clock: SteadyClock) -> Sequence[Instance]:
    """Return a complete listing. Until an account has given the time after a start, the listing's Date sets the clock.

    Nothing is metered before a listing: by the clock of a machine that is a day ahead, it would bill a day.

    Raises:
        MarketError: the market did not answer, or not the second time.
    """
    rows = await market.instances()
    first, asked_at = market.server_time(), clock.monotonic()
    if clock.is_set or first is None or abs(first - clock.wall()) <= CLOSE:
        return rows
    rows = await market.instances()
    passed = timedelta(seconds=clock.monotonic() - asked_at)
    again = market.server_time()
    clock.heed(market.name, again if again is not None and abs(again - first - passed) <= CLOSE else None)
    return rows


async def believed(market: port.Market, clock: SteadyClock, server_time: datetime | None) -> datetime | None:
    """Return the market's time, or None if it is far off and a second answer disagrees with it.

    Raises:
        MarketError: the market did not answer again.
    """
    if server_time is None or abs(server_time - clock.wall()) <= CLOSE:
        return server_time
    asked_at = clock.monotonic()
    again = (await market.account()).market_time
    passed = timedelta(seconds=clock.monotonic() - asked_at)
    return again if again is not None and abs(again - server_time - passed) <= CLOSE else None
