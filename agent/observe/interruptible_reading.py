"""An order to end something does not wait for a slow market: it interrupts the reading of the cycle.

Invariants:
1. Only reading is cut short; a write that has begun is resolved or left in doubt as ever.
2. While an order waits for its turn, no cycle goes on reading, and no cycle begins to read.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator


class ReadingInterrupted(Exception):
    """A person's order waits: this cycle ends here, and another begins after it."""


class InterruptibleReading:
    """Runs a cycle's reading step by step until an order interrupts it."""

    def __init__(self) -> None:
        """Begin without an order."""
        self._waiting = 0
        self._patience: asyncio.Timeout | None = None

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Interrupt the reading of cycles while an order waits in this block for its turn."""
        self._waiting += 1
        try:
            # A deadline that has expired already ends the reading, and refuses a second end.
            if self._patience is not None and not self._patience.expired():
                self._patience.reschedule(asyncio.get_running_loop().time())
            yield
        finally:
            self._waiting -= 1

    async def run(self, step: Callable[[], Awaitable[object]]) -> None:
        """Do one step of reading.

        Raises:
            ReadingInterrupted: it was cut short, or not begun.
        """
        if self._waiting:
            raise ReadingInterrupted
        patience = asyncio.timeout(None)
        try:
            async with patience as self._patience:
                await step()
        except TimeoutError:
            if patience.expired():
                raise ReadingInterrupted from None
            raise
        finally:
            self._patience = None
