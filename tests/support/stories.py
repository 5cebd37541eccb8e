"""A story's stage: a market, daemons and a person's commands, all as processes, on boxes whose clocks run fast."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from agent.simulator.vast.http.call_gate import DEFAULT_KEY
from tests.support import programs
from tests.support.programs import LIVE, Daemon, Market

MACHINE = Path(__file__).with_name("machine")
START = "2027-03-02T09:00:00+00:00"
"""An instant far from the end of a day and of a month."""
SPEED = 30.0
"""Simulated seconds in a second: the two minutes that prove an absence take four seconds, a deadline of 30 s one."""
CLOCK_LOOKS = 5
"""Of the market's clock: the quickest answer counts, for a slow one may set all boxes' clocks a minute wrong."""
PAUSE_SECONDS = 0.1
ON_DEMAND = ('strategy = "patient"', 'strategy = "ondemand"')
CONFIG = LIVE.replace('poll = "5s"', 'poll = "10s"').replace(*ON_DEMAND)
"""Nobody outbids on-demand: what stops was stopped by somebody, and no floor rises above a bid before it arrives."""
LEDGER = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm")

Fleet = dict[str, Any]


class Box:
    """A machine with a daemon's files. Its clock may be set wrong."""

    def __init__(self, place: Path, market: Market, clock: str) -> None:
        self.place = place
        self.market = market
        self.environment = {"PYTHONPATH": str(MACHINE), "STORY_CLOCK": f"{clock} {place / 'jump'}"}
        place.mkdir(exist_ok=True)
        self.write()

    def write(self, *changes: tuple[str, str]) -> None:
        """Write the live configuration of one workload, with texts in it changed."""
        text = CONFIG.format(url=self.market.url)
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (self.place / "agent.toml").write_text(text)

    def jump(self, seconds: float) -> None:
        """Set the clock wrong by so much."""
        (self.place / "jump").write_text(str(seconds))

    def lose_ledger(self) -> None:
        """Delete the ledger. The fleet's id is still in a file beside it."""
        for name in LEDGER:
            (self.place / name).unlink(missing_ok=True)

    @contextlib.asynccontextmanager
    async def daemon(self) -> AsyncIterator[Daemon]:
        """Run the daemon, from its first cycle on."""
        async with programs.daemon(self.place, **self.environment) as daemon:
            await daemon.until_told("READY=1")
            yield daemon

    def starting(self) -> contextlib.AbstractAsyncContextManager[Daemon]:
        """Start the daemon without waiting for anything."""
        return programs.daemon(self.place, **self.environment)

    async def gpubid(self, *words: str | Path) -> programs.Ran:
        """Run a verb."""
        return await programs.gpubid(self.place, *words, **self.environment)

    async def told(self) -> str:
        """Return what `gpubid fleet` prints."""
        ran = await self.gpubid("fleet")
        assert ran.code == 0, ran.err
        return ran.out

    async def fleet(self) -> Fleet:
        """Return the fleet from the daemon's socket, as a member of its group sees it."""
        connector = aiohttp.UnixConnector(str(self.place / "ledger.sqlite.sock"))
        async with aiohttp.ClientSession(connector=connector) as link, link.get("http://gpubid/fleet") as reply:
            assert reply.status == 200, await reply.text()
            return dict(await reply.json())

    async def until(self, is_so: Callable[[Fleet], Any], what: str) -> Any:
        """Return the first true answer about the fleet on the socket."""
        deadline = time.monotonic() + programs.PATIENCE_SECONDS
        while not (answer := is_so(shown := await self.fleet())):
            assert time.monotonic() < deadline, f"never seen: {what}; but {shown}"
            await asyncio.sleep(PAUSE_SECONDS)
        return answer

    async def until_why(self, *parts: str, slot: int = 0) -> str:
        """Wait until the reason why a slot does not run has these parts. Return the output of `gpubid fleet` then."""
        await self.until(lambda shown: all(part in shown["slots"][slot]["why"] for part in parts), " and ".join(parts))
        return await self.told()

    async def until_noticed(self, part: str) -> None:
        """Wait until a notice about the whole fleet contains this part."""
        await self.until(lambda shown: any(part in notice["sentence"] for notice in shown["notices"]), part)

    async def running(self) -> dict[str, Any]:
        """Return the lease, once it runs."""
        return dict(
            await self.until(
                lambda shown: next((held for held in shown["leases"] if held["state"] == "running"), None),
                "a running lease",
            )
        )


class Stage:
    """One market and the first box."""

    def __init__(self, place: Path, market: Market, epoch: float, speed: float) -> None:
        self.market = market
        self.speed = speed
        self._clock = f"{epoch!r} {speed!r}"
        self.box = self.another(place)

    def another(self, place: Path) -> Box:
        """Set up one more box."""
        return Box(place, self.market, self._clock)

    async def live(self) -> list[dict[str, Any]]:
        """Return the contracts that exist."""
        return [row for row in (await self.market.truth())["contracts"] if row["ended"] is None]

    async def ids(self) -> list[str]:
        """Return the ids of the contracts that exist."""
        return [str(row["id"]) for row in await self.live()]

    async def rents(self) -> int:
        """Return how many creates arrived."""
        return sum("/asks/" in path for _, path in await self.market.writes())

    async def ended(self, instance: str) -> bool:
        """Return whether an order to end an instance arrived."""
        return ("DELETE", instance) in [
            (method, path.rstrip("/").split("/")[-1]) for method, path in await self.writes()
        ]

    async def writes(self) -> list[tuple[str, str]]:
        """Return every order that arrived."""
        return await self.market.writes()

    async def console(
        self, method: str, instance: str, body: Mapping[str, Any] | None = None, *, key: str = DEFAULT_KEY
    ) -> None:
        """Do an action on an instance as in the vendor's console, by the owner or by somebody with `key`."""
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as link:
            url = f"{self.market.url}/api/v0/instances/{instance}/"
            async with link.request(method, url, json=body or {}) as reply:
                assert reply.status == 200, await reply.text()

    async def looks(self, times: int) -> None:
        """Wait until the market's instances were listed, or requested in vain, this many more times."""
        begun = await self._listed()
        deadline = time.monotonic() + programs.PATIENCE_SECONDS
        while await self._listed() < begun + times:
            assert time.monotonic() < deadline, f"fewer than {times} looks"
            await asyncio.sleep(PAUSE_SECONDS)

    async def passes(self, seconds: float) -> None:
        """Wait until the market's clock has advanced by these seconds."""
        until = await self._now() + seconds
        deadline = time.monotonic() + programs.PATIENCE_SECONDS
        while (left := until - await self._now()) > 0:
            assert time.monotonic() < deadline, "the market's clock stands still"
            await asyncio.sleep(left / self.speed)

    async def _now(self) -> float:
        return float((await self.market.truth())["now"])

    async def _listed(self) -> int:
        calls = (await self.market.truth())["calls"]
        return sum(call["method"] == "GET" and call["path"].rstrip("/").endswith("/instances") for call in calls)


@contextlib.asynccontextmanager
async def stage(place: Path, speed: float = SPEED, *options: str) -> AsyncIterator[Stage]:
    """Start a market whose clock all boxes share. `options` are further options of `gpubid simulate`."""
    async with programs.market(place, "--speed", str(speed), "--start", START, *options) as market:
        looks = [await _epoch(market, speed) for _ in range(CLOCK_LOOKS)]
        yield Stage(place, market, min(looks)[1], speed)


async def _epoch(market: Market, speed: float) -> tuple[float, float]:
    """Return how long the market's answer with its time took, and its clock's time when ours began."""
    before = time.monotonic()
    now = (await market.truth())["now"]
    after = time.monotonic()
    return after - before, now - speed * (before + after) / 2


@contextlib.asynccontextmanager
async def begun(
    place: Path, *changes: tuple[str, str], speed: float = SPEED
) -> AsyncIterator[tuple[Stage, Daemon, dict[str, Any]]]:
    """Start a market and a daemon, and wait until its one lease runs."""
    async with stage(place, speed) as it:
        it.box.write(*changes)
        async with it.box.daemon() as daemon:
            yield it, daemon, await it.box.running()
