"""The other ways in which a lead passes: each meets a leader that writes, at a moment drawn from a seed.

1. A leader is frozen and wakes up: the standby ends its session. The woken daemon sends nothing and ends.
2. The ledger's server dies and comes back, or its replica is promoted: who reaches the server first leads.
3. The network of the leader's box is cut for a time: it leads on if nobody else led meanwhile.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tests.failovers import history
from tests.failovers.rig import KINDS, Rig
from tests.support import boxes, programs
from tests.support.programs import Daemon

MOST_DELAY_SECONDS = 40.0
"""The market answers a write after so long at most, in its own seconds: half a minute of them is one of ours."""
MOST_OPEN_SECONDS = 0.7
"""The blow comes so long after a write was written down at most."""
PROVOKED_SECONDS = 10.0
"""How long a provoked write is waited for. Then the blow comes anyway."""
SETTLED_SECONDS = 90.0
"""How long it may take until somebody is seen to lead after the blow."""


@dataclass(frozen=True, slots=True)
class Passed:
    """How it went: the seconds from the blow to the standby's first cycle, or None if the old leader leads on.

    `kind` is the write that was provoked; `writing` counts those that were on their way, or not settled, at the blow.
    """

    gap_seconds: float | None
    kind: str
    writing: int
    wrong: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Blow:
    """The moment of a blow, the two daemons, and the kind of write that was provoked."""

    leader: Daemon
    standby: Daemon
    kind: str
    writing: int
    epoch: int
    at_seconds: float

    def gap_seconds(self) -> float:
        """Return the seconds since the blow."""
        return time.monotonic() - self.at_seconds


async def freeze(made: Rig, chance: Random) -> Passed:
    """Stop the leader with SIGSTOP until the standby leads, and wake it: it sends nothing and ends."""
    async with _under_load(made, chance) as blow:
        blow.leader.process.send_signal(signal.SIGSTOP)
        await boxes.until_led(blow.standby)
        gap = blow.gap_seconds()
        await made.led()
    assert blow.standby.logs("leader.frozen"), blow.standby.err[-20:]
    old, made.leader = made.leader, 1 - made.leader
    await made.settle(blow.kind)
    known, seen = set(made.intents()), await made.calls()
    blow.leader.process.send_signal(signal.SIGCONT)
    assert await blow.leader.ended() == 1, blow.leader.err[-5:]
    calls = [each for each in await made.calls() if each not in seen]
    late = history.late(calls, set(made.intents()) - known)
    await made.stop(old)
    return Passed(gap, blow.kind, blow.writing, tuple(late))


async def strike(made: Rig, chance: Random, blows: Callable[[], Awaitable[None]]) -> Passed:
    """Await `blows`, which ends once the ledger's server can be reached by both again; see who leads after that."""
    async with _under_load(made, chance) as blow:
        led = asyncio.create_task(boxes.until_led(blow.standby))
        timed = asyncio.create_task(_after(led, blow))
        await blows()
    epoch = await _leads(made)
    has_passed = epoch != blow.epoch
    if has_passed:
        gap = await timed
        assert await blow.leader.ended() == 1, blow.leader.err[-5:]
        made.leader = 1 - made.leader
    else:
        gap = None
        led.cancel()
        await asyncio.gather(led, timed, return_exceptions=True)
    await made.led()
    await made.settle(blow.kind)
    await made.stop(1 - made.leader)
    return Passed(gap, blow.kind, blow.writing)


async def _after(led: asyncio.Task[None], blow: Blow) -> float:
    await led
    return blow.gap_seconds()


async def _leads(made: Rig) -> int:
    """Return the epoch that is the first to beat from now on."""
    since, deadline = time.time(), time.monotonic() + SETTLED_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, *_server_errors()):
            epoch, is_later = await asyncio.to_thread(made.beat, since)
            if is_later:
                return epoch
        await asyncio.sleep(0.1)
    raise AssertionError("nobody leads")


def _server_errors() -> tuple[type[Exception], ...]:
    import psycopg

    return (psycopg.Error,)


@contextlib.asynccontextmanager
async def _under_load(made: Rig, chance: Random) -> AsyncIterator[Blow]:
    """Start a standby and provoke a write at a slow market. The block begins while the write is on its way."""
    standby = await made.start(1 - made.leader)
    await boxes.until_standing_by(standby)
    kind, delay = chance.choice(KINDS), chance.uniform(0.0, MOST_DELAY_SECONDS)
    for method in ("PUT", "DELETE"):
        await made.pair.market.weather("slow", route=method, delay=delay)
    provoking = asyncio.create_task(made.provoke(kind))
    try:
        epoch, _ = made.beat(0.0)
        await _until_open(made)
        await asyncio.sleep(chance.uniform(0.0, MOST_OPEN_SECONDS))
        writing = made.open_intents()
        await made.blown(kind)
        yield Blow(made.daemons[made.leader], standby, kind, writing, epoch, time.monotonic())
    finally:
        provoking.cancel()
        await asyncio.gather(provoking, return_exceptions=True)
        await made.pair.market.still()


async def _until_open(made: Rig) -> None:
    """Wait until the leader has written down a write, or until none came."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PROVOKED_SECONDS):
            await programs.until(made.open_intents, "an open write")
