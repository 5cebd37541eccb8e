"""Whether a market lets a key read one resource, which shows how much the key may do."""

from agent.markets import market_errors
from agent.markets.transport import Call, Transport

_REFUSED = frozenset({401, 403})


async def may_read(link: Transport, call: Call) -> bool | None:
    """Return whether the key may read a resource, None if the answer does not show it; the link is closed.

    Raises: Throttled, Unavailable.
    """
    try:
        reply = await link.read(call)
    except market_errors.Malformed:
        return None
    finally:
        await link.close()
    if reply.is_ok:
        return True
    return False if reply.status in _REFUSED else None
