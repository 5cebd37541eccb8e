"""The time that a market tells, asked for twice where it is far off: one wrong answer sets no clock."""

from datetime import datetime, timedelta

from agent.clock import CLOSE, SteadyClock
from agent.markets import port


async def believed(market: port.Market, clock: SteadyClock, told: datetime | None) -> datetime | None:
    """Return the market's time, or None if it is far off and a second answer disagrees with it.

    Raises:
        MarketError: the market did not answer again.
    """
    if told is None or abs(told - clock.wall()) <= CLOSE:
        return told
    asked_at = clock.monotonic()
    again = (await market.account()).market_time
    passed = timedelta(seconds=clock.monotonic() - asked_at)
    return again if again is not None and abs(again - told - passed) <= CLOSE else None
