"""A market over HTTP for an engine in memory: its calls are waited for, and come back at once."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from agent.markets import port


class Waited:
    """A market over HTTP whose answers are waited for: its calls come back at once, as those in memory do."""

    def __init__(self, inner: port.Market, loop: asyncio.AbstractEventLoop) -> None:
        self.name = inner.name
        self.inner = inner
        self._loop = loop

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        call = getattr(self.inner, verb)
        if not asyncio.iscoroutinefunction(call):
            return call

        @functools.wraps(call)
        async def waited(*given: Any, **named: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(call(*given, **named), self._loop).result(30)

        return waited


@contextlib.contextmanager
def loop_beside() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread of its own."""
    made = asyncio.new_event_loop()
    thread = threading.Thread(target=made.run_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.call_soon_threadsafe(made.stop)
        thread.join(10)
        made.close()
