"""Whether a key may do more than gpubid needs: tested by a request that a scoped key is refused."""

from collections.abc import Callable

from agent import clock as clocks
from agent.markets import key_scope, pace, transport
from agent.markets.vast import client


async def is_wide(url: str, key: transport.Key, clock: clocks.Clock, jitter: Callable[[], float]) -> bool | None:
    """Return whether the key may read the machines that the account rents out, which we never ask; None: not known.

    A key without scopes may do everything, that included.

    Raises: Throttled, Unavailable.
    """
    link = transport.Transport(url, key, clock, pace.Pace(clock, client.LANES), jitter)
    return await key_scope.may_read(link, transport.Call("account", "GET", "/api/v0/machines/"))
