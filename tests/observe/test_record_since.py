"""From when on a market's record of events is read: from the start of a gap once, then from lately."""

from datetime import datetime, timedelta
from typing import cast

from agent.clock import SteadyClock, SteppedClock
from agent.domain.market.instance import Instance
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.markets import market_errors, port
from agent.markets.port import Account
from agent.observe.poller import EVENTS_KEPT, Poller
from tests.support import builders

GAP = timedelta(days=5)


class Record:
    """A market without instances, which keeps the starts of the records that were read there."""

    name = "vast"

    def __init__(self) -> None:
        self.is_away = False
        self.starts: list[datetime] = []

    async def instances(self) -> tuple[Instance, ...]:
        return ()

    async def account(self) -> Account:
        return Account("me", None, builders.NOW)

    async def events(self, since: datetime) -> tuple[()]:
        self.starts.append(since)
        if self.is_away:
            raise market_errors.Unavailable("no answer within 20 s")
        return ()

    def capabilities(self) -> frozenset[port.Capability]:
        return frozenset({port.Capability.EVENTS})

    def server_time(self) -> None:
        return None

    def rules(self) -> MarketRules:
        return ASSUMED

    def not_sold(self) -> dict[str, str]:
        return {}


async def test_a_gap_is_read_in_its_cycle_and_again_while_the_record_fails_and_then_no_more() -> None:
    """Each closer look read the record from the gap on, for as long as the daemon ran."""
    market, stepped = Record(), SteppedClock(builders.NOW)
    poller = Poller(cast("port.Market", market), SteadyClock(stepped), "", lambda _: "")
    gap, lately = stepped.now() - GAP, stepped.now() - EVENTS_KEPT
    await poller.look()
    market.is_away = True
    await poller.recall(gap)
    await poller.look()
    market.is_away = False
    await poller.look_closer([])
    await poller.look_closer([])
    assert market.starts == [gap, gap, gap], "a second closer look of the cycle still sees what was missed"
    await poller.look()
    await poller.look_closer([])
    assert market.starts[-1] == lately
