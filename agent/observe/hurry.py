"""An order to end something does not wait for a slow market: it interrupts the reading of the cycle.

Invariants:
1. Only reading is cut short; a write that has begun is resolved or left in doubt as ever.
2. Between two cycles a hurry does nothing: the order takes its turn at once.
"""

import asyncio
from collections.abc import Awaitable, Callable


class Hurried(Exception):
    """A person's order waits: this cycle ends here, and another begins after it."""


class Hurry:
    """Runs a cycle's reading step by step until an order interrupts it."""

    def __init__(self) -> None:
        """Begin without an order."""
        self._is_due = False
        self._patience: asyncio.Timeout | None = None

    def begin(self) -> None:
        """Forget an earlier order: a new cycle begins."""
        self._is_due = False

    def now(self) -> None:
        """Interrupt the reading of the present cycle."""
        self._is_due = True
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())

    async def read(self, step: Callable[[], Awaitable[object]]) -> None:
        """Do one step of reading.

        Raises:
            Hurried: it was cut short, or not begun.
        """
        if self._is_due:
            raise Hurried
        try:
            async with asyncio.timeout(None) as self._patience:
                await step()
        except TimeoutError:
            if self._is_due:
                raise Hurried from None
            raise
        finally:
            self._patience = None
