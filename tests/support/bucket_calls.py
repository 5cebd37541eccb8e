"""Calls to buckets that are under way. A bucket answers in real time, but the worlds' clocks are moved by hand.

A world whose clock moved during a call would see its bucket away for minutes when the machine is busy for a second.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
from typing import TypeVar

from agent.buckets import bucket_client
from agent.buckets.bucket_client import BucketClient

T = TypeVar("T")
PATIENCE_SECONDS = 120.0
"""Real seconds after which a bucket that hangs ends the test."""


class BucketCalls:
    """The calls of one world, while it is `counted`."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Count one call while the block runs."""
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
            self._changed.set()

    async def settle(self) -> None:
        """Wait until every task that was begun has come to a wait, and none of them waits for a bucket."""
        await asyncio.sleep(0)
        while self.count:
            self._changed.clear()
            await self._changed.wait()
            # Whoever was answered may ask for more.
            await asyncio.sleep(0)


@contextlib.contextmanager
def counted(calls: BucketCalls) -> Iterator[None]:
    """Count the calls of all clients while the block runs, and give each as long as a busy machine may need."""
    done, deadline = BucketClient._done, bucket_client.DEADLINE_SECONDS

    async def counting(self: BucketClient, work: Awaitable[T], path: str) -> T:
        with calls.one():
            return await done(self, work, path)

    BucketClient._done = counting  # type: ignore[method-assign]
    bucket_client.DEADLINE_SECONDS = PATIENCE_SECONDS
    try:
        yield
    finally:
        BucketClient._done = done  # type: ignore[method-assign]
        bucket_client.DEADLINE_SECONDS = deadline
