"""Whether a key may do more than gpubid needs: tested by a request that a restricted key is refused.

The market's document says that keys are scoped and that a resource outside gets 403. No route reports the scope itself,
and only an order shows whether a key may order.
"""

from collections.abc import Callable

from agent import clock as clocks
from agent.markets import key_scope, pace, transport
from agent.markets.runpod import client


async def is_wide(url: str, key: transport.Key, clock: clocks.Clock, jitter: Callable[[], float]) -> bool | None:
    """Return whether the key may read serverless endpoints, which we never ask for; None: not known.

    Raises: Throttled, Unavailable.
    """
    link = transport.Transport(url, key, clock, pace.Pace(clock, client.LANES), jitter)
    return await key_scope.may_read(link, transport.Call("v2", "GET", "/v2/serverless"))
