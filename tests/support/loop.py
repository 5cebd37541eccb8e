"""An event loop that never waits: its time jumps to the next timer, and work for a thread runs at once.

Two runs of one story make the same steps in the same order, on a busy machine too. During a
request to something real outside, such as a bucket, the loop's time stops and the loop waits for the answer.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.support.wiring import IS_WIRED

T = TypeVar("T")
PATIENCE_SECONDS = 150.0
"""Real seconds after which nothing is expected from outside any more."""


class _NeverWaits(selectors.SelectSelector):
    """A selector to which nothing arrives without a request. A wait ends at once and moves the loop's time."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = 0.0
        self.is_asked: Callable[[], bool] = lambda: False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.is_asked() and (timeout is None or timeout > 0):
            if not (arrived := super().select(PATIENCE_SECONDS)):
                raise RuntimeError(f"what was asked from outside has not answered for {PATIENCE_SECONDS:g} s")
            return arrived
        if timeout is None:
            raise RuntimeError("everything waits and nothing can happen: a deadlock")
        self.waited += max(timeout, 0.0)
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop that never waits. `on_thread` gets the work for a thread of that name, and runs it.

    `stand_still` takes a function that returns whether a request to the outside is under way.
    """

    def __init__(self) -> None:
        self._never_waits = _NeverWaits()
        super().__init__(self._never_waits)
        self.on_thread: Callable[[str, Callable[[], Any]], Any] = lambda _, work: work()

    def time(self) -> float:
        """Return the sum of the waits, in seconds."""
        return self._never_waits.waited

    def stand_still(self, is_asked: Callable[[], bool]) -> None:
        """Wait in real time, without a step of the loop's time, while `is_asked` returns true."""
        self._never_waits.is_asked = is_asked

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Run the function now."""
        name = getattr(executor, "_thread_name_prefix", "")
        return _run_now(self, lambda: self.on_thread(name, functools.partial(func, *args) if args else func))


class OneThread(asyncio.SelectorEventLoop):
    """An event loop in real time that runs the ledger's work at once, without a switch to the ledger's thread."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Run the function now if it is the ledger's."""
        if not getattr(executor, "_thread_name_prefix", "").startswith("ledger-"):
            return super().run_in_executor(executor, func, *args)
        return _run_now(self, functools.partial(func, *args))


def _run_now(on_loop: asyncio.AbstractEventLoop, work: Callable[[], Any]) -> asyncio.Future[Any]:
    future = on_loop.create_future()
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - a thread hands on whatever was raised on it
        future.set_exception(error)
        future.exception()
    return future


def run_on_one_thread(story: Coroutine[Any, Any, T]) -> T:
    """Run a story in real time on a separate loop; with the ledger's thread if IS_WIRED."""
    with asyncio.Runner(loop_factory=None if IS_WIRED else OneThread) as runner:
        return runner.run(story)


def run(story: Callable[[Loop], Coroutine[Any, Any, T]]) -> T:
    """Run a story on a separate loop."""
    loop = Loop()
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(story(loop))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
