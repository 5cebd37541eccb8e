"""The last check before the first byte of a write: may this daemon still send?

A write waits for its turn and for a connection. Meanwhile another daemon may have begun to lead. The permit belongs to
the task that sends, so no adapter passes it on. A permit may become too old in the queue of a market's lane, where each
call waits for seconds: a write that has waited gets a new one before it leaves.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agent.markets import market_errors

Permit = Callable[[], str]
"""A function that returns why a write must not leave, or an empty text."""
Renewal = Callable[[], Awaitable[Permit]]
"""A function that records again that a write is about to leave, and returns the permit of that record."""
_permit: ContextVar[Permit] = ContextVar("permit", default=str)
_renewal: ContextVar[Renewal | None] = ContextVar("renewal", default=None)


@contextmanager
def under(permit: Permit, renewal: Renewal | None = None) -> Iterator[None]:
    """Ask `permit` before each write of the block, or the one of `renewal` if the write has waited for its turn."""
    tokens = _permit.set(permit), _renewal.set(renewal)
    try:
        yield
    finally:
        _permit.reset(tokens[0])
        _renewal.reset(tokens[1])


async def renew() -> None:
    """Get a new permit for a write that has waited for its turn, where permits become too old."""
    renewal = _renewal.get()
    if renewal is not None:
        _permit.set(await renewal())


def check() -> None:
    """Refuse a write that must not leave.

    Raises:
        Withheld: nothing was sent.
    """
    why = _permit.get()()
    if why:
        raise market_errors.Withheld(why)
