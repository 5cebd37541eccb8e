import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.markets import market_errors
from agent.markets.instrumented import Instrumented
from tests.markets.scene import BID, LABEL, OFFER, asked, vast_saying
from tests.markets.wire import Says, Seen

Heard = list[tuple[str, str, float]]
DAY = datetime(2026, 11, 5, tzinfo=UTC)


async def test_every_call_is_heard_with_its_end_and_its_time(clock: SteppedClock) -> None:
    def answers(_: Seen) -> Says:
        clock.advance(1.5)
        return Says({"success": False, "error": "insufficient_credit"}, 400)

    heard: Heard = []
    async with vast_saying(answers, clock) as (vast, _):
        market = Instrumented(vast, lambda *call: heard.append(call), clock.monotonic)
        assert (market.name, market.capabilities()) == ("vast", vast.capabilities())
        assert market.rules() is vast.rules()
        calls: list[Any] = [
            market.rent(OFFER, BID, LABEL),
            market.resume("5"),
            market.rebid("5", money.per_hour(1)),
            market.pause("5"),
            market.release("5"),
            market.offers(asked()),
            market.instances(),
            market.instance("5"),
            market.account(),
            market.charges(DAY, DAY),
            market.events(DAY),
        ]
        for call in calls:
            with pytest.raises(market_errors.MarketError):
                await call
        await market.close()
    assert [(operation, outcome) for operation, outcome, _ in heard] == [
        ("rent", "out_of_funds"),
        ("resume", "out_of_funds"),
        ("rebid", "out_of_funds"),
        ("pause", "out_of_funds"),
        ("release", "ambiguous"),
        ("offers", "malformed"),
        ("instances", "malformed"),
        ("instance", "malformed"),
        ("account", "malformed"),
        ("charges", "malformed"),
        ("events", "malformed"),
    ]
    assert all(seconds >= 1.5 for _, _, seconds in heard)


async def test_an_answer_is_passed_on_and_heard_as_ok(clock: SteppedClock) -> None:
    heard: Heard = []
    async with vast_saying(Says({"success": True, "new_contract": 9}), clock) as (vast, _):
        market = Instrumented(vast, lambda *call: heard.append(call), clock.monotonic)
        assert await market.rent(OFFER, BID, LABEL) == "9"
        assert await market.resume("9") is True
    assert [call[:2] for call in heard] == [("rent", "ok"), ("resume", "ok")]


async def test_a_cancelled_call_is_heard_too(clock: SteppedClock) -> None:
    heard: Heard = []
    arrived = asyncio.Event()

    def answers(_: Seen) -> Says:
        arrived.set()
        return Says(hang=True)

    async with vast_saying(answers, clock) as (vast, _):
        market = Instrumented(vast, lambda *call: heard.append(call), clock.monotonic)
        call = asyncio.ensure_future(market.instances())
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert [call[:2] for call in heard] == [("instances", "cancelled")]
