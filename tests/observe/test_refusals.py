"""When a market refuses our key: as long as its answer to every listing is that, and nothing else comes between."""

from datetime import timedelta
from typing import cast

import pytest

from agent.clock import SteadyClock, SteppedClock
from agent.domain.market.account_refusal import Refusal
from agent.domain.market.instance import Instance
from agent.domain.market.market_rules import ASSUMED, MarketRules
from agent.markets import market_errors, port
from agent.markets.port import Account
from agent.observe.poller import Poller
from tests.support import builders

GOOD, REFUSED, AWAY, BUSY, ODD, PAGE = "good", "refused", "away", "busy", "odd", "page"
ERRORS = {
    REFUSED: market_errors.Unauthorized("no such key"),
    AWAY: market_errors.Unavailable("no answer within 20 s"),
    BUSY: market_errors.Throttled("too often", None),
    ODD: market_errors.Malformed("no list"),
    PAGE: market_errors.Unauthorized("HTTP 401", is_proven=False),
}
MINUTES = 10


class Answers:
    """A market without instances, whose listings and account give the set answers in turn."""

    name = "vast"

    def __init__(self, listings: tuple[str, ...], account: str = GOOD) -> None:
        self.listings = list(listings)
        self.of_account = account

    async def instances(self) -> tuple[Instance, ...]:
        if error := ERRORS.get(self.listings.pop(0)):
            raise error
        return ()

    async def account(self) -> Account:
        if error := ERRORS.get(self.of_account):
            raise error
        return Account("me", None, builders.NOW)

    def server_time(self) -> None:
        return None

    def rules(self) -> MarketRules:
        return ASSUMED

    def not_sold(self) -> dict[str, str]:
        return {}


async def refusal(*listings: str, account: str = GOOD) -> Refusal | None:
    """Return the refusal ten minutes after the last of these answers, which come every ten minutes."""
    stepped = SteppedClock(builders.NOW)
    clock = SteadyClock(stepped)
    poller = Poller(cast("port.Market", Answers(listings, account)), clock, "", lambda _: "")
    for _ in listings:
        await poller.look()
        stepped.advance(MINUTES * 60.0)
    return poller.refusal


@pytest.mark.parametrize("between", [AWAY, BUSY, ODD, PAGE])
@pytest.mark.parametrize("first", [(GOOD,), ()], ids=["after a good listing", "after a start"])
async def test_an_outage_is_no_refusal_whatever_came_before(first: tuple[str, ...], between: str) -> None:
    assert await refusal(*first, REFUSED, between) is None
    assert await refusal(*first, REFUSED, between, between, between) is None


@pytest.mark.parametrize("first", [(GOOD,), ()], ids=["after a good listing", "after a start"])
async def test_a_refusal_lasts_since_the_first_that_nothing_interrupted(first: tuple[str, ...]) -> None:
    is_since_start = not first
    for before in ((), (AWAY, AWAY, AWAY), (REFUSED, REFUSED, AWAY)):
        one = await refusal(*first, *before, REFUSED)
        assert one == Refusal(timedelta(minutes=MINUTES), is_since_start)
        three = await refusal(*first, *before, REFUSED, REFUSED, REFUSED)
        assert three == Refusal(timedelta(minutes=3 * MINUTES), is_since_start)


async def test_a_good_listing_ends_a_refusal_whatever_the_account_answers() -> None:
    assert await refusal(REFUSED, GOOD) is None
    assert await refusal(REFUSED, GOOD, account=REFUSED) is None
