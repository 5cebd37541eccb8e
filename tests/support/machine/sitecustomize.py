"""The machine of a story, for an unchanged program. Its clock runs fast, and a story can set it wrong.

Python imports this at its start if this folder is on PYTHONPATH. STORY_CLOCK is "EPOCH SPEED FILE": the wall clock is
EPOCH plus SPEED times the machine's monotonic seconds, plus the seconds in FILE, if it exists. With STORY_TIMERS=real,
timers and deadlines use our own clock. That is for stories in which other programs keep the deadlines. With
STORY_SERVER the deadlines of a ledger on a server are in our own seconds. STORY_NETWORK is the name of the network
namespace that is the machine's.
"""

import asyncio
import contextlib
import ctypes
import os
import selectors
import time
from datetime import UTC, datetime
from pathlib import Path

from agent import clock

_EPOCH, _SPEED, _FILE = os.environ["STORY_CLOCK"].split(" ", 2)
CLONE_NEWNET = 0x40000000
EPOCH, SPEED, FILE = float(_EPOCH), float(_SPEED), Path(_FILE)


def monotonic() -> float:
    """Return seconds that run fast and never jump."""
    return time.monotonic() * SPEED


def jumped() -> float:
    """Return by how many seconds the wall clock is set wrong."""
    with contextlib.suppress(OSError, ValueError):
        return float(FILE.read_text())
    return 0.0


class FastSelector(selectors.DefaultSelector):
    """A selector that waits by the machine's clock."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait `timeout` of the machine's seconds."""
        return super().select(timeout / SPEED if timeout else timeout)


class FastLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers run by the machine's clock."""

    def __init__(self) -> None:
        super().__init__(FastSelector())

    def time(self) -> float:
        """Return the machine's monotonic seconds."""
        return monotonic()


class Policy(asyncio.DefaultEventLoopPolicy):
    """Creates loops with the machine's clock."""

    _loop_factory = FastLoop


class StoryClock(clock.SystemClock):
    """The clock that the program uses as the machine's own."""

    def now(self) -> datetime:
        """Return the wall clock, right or wrong."""
        return datetime.fromtimestamp(EPOCH + monotonic() + jumped(), UTC)

    def monotonic(self) -> float:
        """Return the machine's monotonic seconds."""
        return monotonic()


def enter(network: str) -> None:
    """Move this process, which has one thread yet, to a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/run/netns", network).open() as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network {network}")


if "STORY_NETWORK" in os.environ:
    enter(os.environ["STORY_NETWORK"])
clock.SystemClock = StoryClock  # type: ignore[misc]
if os.environ.get("STORY_SERVER"):
    # The ledger's server keeps our own time, so the deadline of a commit does too.
    from agent.ledger import store

    store.COMMIT_SECONDS *= SPEED
    store.READ_SECONDS *= SPEED
if os.environ.get("STORY_TIMERS") != "real":
    asyncio.set_event_loop_policy(Policy())
