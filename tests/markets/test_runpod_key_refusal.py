"""What refuses RunPod our key: a 401, and a 403 that the market itself wrote; a page proves nothing."""

import pytest

from agent.clock import SteppedClock
from agent.markets import market_errors, transport
from agent.markets.runpod import graph
from tests.markets import pods
from tests.markets.wire import Says


@pytest.mark.parametrize("body", [b"<html>cloudflare</html>", b"", b"Forbidden", b'{"error":"x"}'], ids=repr)
async def test_a_bare_403_refuses_no_key_of_a_listing(clock: SteppedClock, body: bytes) -> None:
    async with pods.runpod_saying(Says(body, 403), clock) as (runpod, _):
        with pytest.raises(market_errors.Unavailable):
            await runpod.instances()


@pytest.mark.parametrize(
    ("says", "is_proven"),
    [
        (pods.problem(401, "invalid token"), True),
        (pods.problem(403, "forbidden"), True),
        (Says(b"Unauthorized", 401), True),
        (Says(b"", 401), True),
        (Says(b" <html>log in</html>", 401), False),
    ],
    ids=["problem", "forbidden", "text", "empty", "page"],
)
async def test_a_page_proves_no_refusal_of_the_key(clock: SteppedClock, says: Says, *, is_proven: bool) -> None:
    async with pods.runpod_saying(says, clock) as (runpod, _):
        with pytest.raises(market_errors.Unauthorized) as caught:
            await runpod.instances()
        assert caught.value.is_proven is is_proven
        with pytest.raises(market_errors.Unauthorized) as caught:
            await runpod.account()
        assert caught.value.is_proven is is_proven


def test_a_bare_403_of_a_graphql_write_is_doubt() -> None:
    for body in (b"<html>", b"", b'{"errors":[{"message":"x"}]}'):
        with pytest.raises(market_errors.Ambiguous):
            graph.done(transport.Reply(403, {}, body))
