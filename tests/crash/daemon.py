"""The daemon as a process of its own, for tests that kill it: `python -m tests.crash.daemon JSON`.

It runs cycles against a market that another process serves. Time is that market's: waiting asks its control API to move
time forward, so nothing sleeps on the wall clock. It ends with 3 when it was to die and did not come to that place.
"""

import asyncio
import datetime as dt
import json
import random
import sys
from pathlib import Path
from typing import Any

import aiohttp

from agent.app import App
from agent.config.settings import Config, Listen, MarketSettings
from agent.decide.limits.limits import Limits
from agent.ledger.server_address import ServerAddress
from agent.outside import Outside
from tests.support.scene import FLEET, KEY, strategies, work

SURVIVED = 3


class ToldClock:
    """The market's time, from its control API."""

    def __init__(self, control: aiohttp.ClientSession, start: float) -> None:
        self._control = control
        self._start = start
        self._now = start

    def now(self) -> dt.datetime:
        return dt.datetime.fromtimestamp(self._now, dt.UTC)

    def monotonic(self) -> float:
        return self._now - self._start

    async def sleep(self, seconds: float) -> None:
        """Move the market's time to `seconds` from now, unless another wait has moved it there already."""
        deadline = self._now + seconds
        await asyncio.sleep(0)
        if deadline > self._now:
            async with self._control.post("/advance", json={"seconds": deadline - self._now}) as answer:
                self._now = float((await answer.json())["now"])


async def run(told: dict[str, Any]) -> int:
    """Open the program on a ledger and run cycles until they are over or it dies."""
    config = Config(
        file=Path(told["ledger"]).with_name("agent.toml"),
        digest="",
        markets=(MarketSettings("vast", "", "still", "", None, spend=False),),
        limits=Limits(),
        workloads=(work(slots=told["slots"], image_gb=told["image_gb"], ssh_keys=tuple(told["ssh_keys"])),),
        poll=dt.timedelta(seconds=15),
        ledger=Path(told["ledger"]),
        listen=Listen("127.0.0.1", 0),
        strategies=None,
        ledger_server=ServerAddress(*told["server"]) if told["server"] else None,
    )
    ids = random.Random(told["ids"])
    async with aiohttp.ClientSession(told["control_url"]) as control:
        clock = ToldClock(control, told["now"])
        outside = Outside(
            clock,
            lambda _: KEY,
            {"vast": told["vast_url"]},
            new_id=lambda: f"{ids.getrandbits(64):016x}",
            jitter=lambda: 0.5,
            fleet_id=FLEET,
        )
        app = await App.open(config, strategies(), outside)
        try:
            for _ in range(told["cycles"]):
                done = await app.cycle()
                await clock.sleep(2.0 if done.is_busy else 15.0)
        finally:
            await app.close()
    return SURVIVED


if __name__ == "__main__":
    sys.exit(asyncio.run(run(json.loads(sys.argv[1]))))
