"""Whether a market has shown its time since the start: until then our clock is confirmed by nobody."""

from datetime import datetime, timedelta
from typing import cast

import pytest

from agent.clock import SteadyClock, SteppedClock
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.markets import market_errors, port
from agent.markets.port import Account
from agent.observe.poller import Poller
from tests.support import builders

NOW = builders.NOW


class Answers:
    """A market without instances, whose account gives the set answers in turn."""

    name = "vast"

    def __init__(self, *answers: datetime | market_errors.Throttled | None) -> None:
        self.answers = list(answers)

    async def instances(self) -> tuple[()]:
        return ()

    async def account(self) -> Account:
        answer = self.answers.pop(0)
        if isinstance(answer, market_errors.Throttled):
            raise answer
        return Account("me", None, answer)

    def server_time(self) -> None:
        return None

    def rules(self) -> MarketRules:
        return ASSUMED

    def not_sold(self) -> dict[str, str]:
        return {}


REFUSED = market_errors.Throttled("too often", NOW)


@pytest.mark.parametrize(
    ("answers", "is_read"),
    [
        ((NOW,), True),
        ((None,), True),
        ((REFUSED,), False),
        ((NOW + timedelta(days=1), NOW + timedelta(days=3)), False),
    ],
    ids=["told", "tells none", "throttled", "contradicts itself"],
)
async def test_a_clock_is_read_once_the_market_has_told_its_time(
    answers: tuple[datetime | market_errors.Throttled | None, ...], *, is_read: bool
) -> None:
    clock = SteadyClock(SteppedClock(NOW))
    poller = Poller(cast("port.Market", Answers(*answers)), clock, "", lambda _: "")
    assert not poller.view.is_clock_read
    view = await poller.look()
    assert (view.is_fresh, view.is_clock_read) == (True, is_read)
