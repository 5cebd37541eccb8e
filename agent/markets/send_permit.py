"""The last check before the first byte of a write: may this daemon still send?

A write waits for its turn and for a connection. Meanwhile another daemon may have begun to lead. The permit belongs to
the task that sends, so no adapter passes it on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from agent.markets import market_errors

Permit = Callable[[], str]
"""A function that returns why a write must not leave, or an empty text."""
_permit: ContextVar[Permit] = ContextVar("permit", default=str)


@contextmanager
def under(permit: Permit) -> Iterator[None]:
    """Ask `permit` before each write of the block."""
    token = _permit.set(permit)
    try:
        yield
    finally:
        _permit.reset(token)


def check() -> None:
    """Refuse a write that must not leave.

    Raises:
        Withheld: nothing was sent.
    """
    why = _permit.get()()
    if why:
        raise market_errors.Withheld(why)
