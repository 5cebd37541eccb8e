"""What wakes the daemon counts by monotonic seconds, whatever the wall clock is set to."""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo

import pytest

from agent import schedule


class Yesterday(datetime):
    """A wall clock that was set back a day."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> "Yesterday":
        return super().now(tz) - timedelta(days=1)


async def twice(start: Callable[[Callable[[str], None]], None]) -> set[str]:
    """Wait until cycle and watchdog were woken twice each, at most 30 s; return those that were."""
    beats: list[str] = []
    enough = asyncio.Event()

    def note(what: str) -> None:
        beats.append(what)
        if min(beats.count("wake"), beats.count("beat")) > 1:
            enough.set()

    start(note)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(enough.wait(), 30)
    return {what for what in beats if beats.count(what) > 1}


async def test_a_clock_set_back_a_day_stops_neither_cycle_nor_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Callable[[str], None]] = []
    clockwork = schedule.Clockwork(
        timedelta(seconds=0.02),
        lambda: said[-1]("wake"),
        lambda: None,
        lambda: said[-1]("beat"),
        watchdog=0.06,
    )
    clockwork.start()
    try:
        assert await twice(said.append) == {"wake", "beat"}
        for place in ("apscheduler.schedulers.base.datetime", "apscheduler.triggers.interval.datetime"):
            monkeypatch.setattr(place, Yesterday)
        assert await twice(said.append) == {"wake", "beat"}
        clockwork.repoll(timedelta(seconds=0.01))
        assert await twice(said.append) == {"wake", "beat"}
    finally:
        clockwork.shutdown()
