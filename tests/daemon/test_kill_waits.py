"""`gpubid kill` waits and says what still bills, per lease, until it does not; Ctrl-C ends the wait alone.

A market that asks for patience is left alone for a minute: these machines' clocks run fast.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from tests.support import launch, programs, stories
from tests.support.programs import PATIENCE_SECONDS, environment, until
from tests.support.stories import Box

YEAR = 31_536_000


class Killing:
    """`gpubid kill` as a process whose lines are read as they come."""

    def __init__(self, process: launch.Process) -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        assert process.stdout is not None
        assert process.stderr is not None
        self._reading = [
            asyncio.ensure_future(programs._collect(process.stdout, self.out)),
            asyncio.ensure_future(programs._collect(process.stderr, self.err)),
        ]

    async def ended(self) -> int:
        code = await asyncio.wait_for(self.process.wait(), PATIENCE_SECONDS)
        await asyncio.gather(*self._reading)
        return code

    async def says(self, words: str) -> None:
        await until(lambda: any(words in line for line in (*self.out, *self.err)), f"{words}: {self.out} {self.err}")


@contextlib.asynccontextmanager
async def killing(box: Box, *arguments: str) -> AsyncIterator[Killing]:
    its_own = environment(box.place, **box.environment)
    process = await launch.start("agent", "kill", *arguments, folder=box.place, environment=its_own)
    try:
        yield Killing(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def refuse(market: programs.Market, *routes: str) -> None:
    for route in routes:
        await market.weather("throttle_retry_after", route=route, retry_after=YEAR)


async def test_it_names_what_bills_until_it_does_not(tmp_path: Path) -> None:
    async with stories.stage(tmp_path) as stage, stage.box.daemon():
        market = stage.market
        await until(market.billing, "a rent")
        await refuse(market, "DELETE /instances")
        async with killing(stage.box) as kill:
            await kill.says("pause confirmed")
            await kill.says("still bills disk on vast")
            assert kill.process.returncode is None, "it waits"
            assert "release rejected throttled" in " ".join(kill.out)
            await market.still()
            assert await kill.ended() == 0
            assert "nothing bills any more" in kill.out[-1]
        assert await market.billing() == []


async def test_a_kill_of_a_target_waits_for_its_leases_and_says_how_long_it_holds(tmp_path: Path) -> None:
    async with stories.stage(tmp_path) as stage, stage.box.daemon():
        market = stage.market
        await until(market.billing, "a rent")
        await refuse(market, "DELETE /instances")
        early = await stage.box.gpubid("kill", "train", "--no-wait")
        assert early.code == 1, early
        assert "not all is confirmed; the daemon's next cycle tries again" in early.out
        async with killing(stage.box, "train") as kill:
            await kill.says("still bills")
            assert kill.process.returncode is None, "it waits"
            await market.still()
            assert await kill.ended() == 0
        assert "nothing is rented there until `gpubid kill --lift train`" in kill.out
        assert await market.billing() == []
        lifted = await stage.box.gpubid("kill", "--lift")
        said = "no kill was in force; still held: train (kill); `gpubid resume TARGET` ends such a hold\n"
        assert (lifted.code, lifted.out) == (0, said)
        assert (await stage.box.gpubid("kill", "--lift", "train")).code == 0


async def test_without_waiting_it_returns_at_once_and_fails_while_something_bills(tmp_path: Path) -> None:
    async with stories.stage(tmp_path) as stage, stage.box.daemon():
        market = stage.market
        await until(market.billing, "a rent")
        await refuse(market, "DELETE /instances", "PUT /instances")
        ran = await stage.box.gpubid("kill", "--no-wait")
        assert ran.code == 1
        assert "still bills" in ran.out
        assert "1 lease(s) still bill: the daemon keeps trying to end them" in ran.out
        assert "1 of" not in ran.out.replace("1 lease", ""), "nothing was confirmed"
        await market.still()
        await until(lambda: _nothing(market), "the daemon carries the kill on")


async def _nothing(market: programs.Market) -> bool:
    return not await market.billing()


async def test_interrupted_it_leaves_the_kill_in_force_and_says_so(tmp_path: Path) -> None:
    async with stories.stage(tmp_path) as stage, stage.box.daemon():
        market = stage.market
        await until(market.billing, "a rent")
        await refuse(market, "DELETE /instances", "PUT /instances")
        async with killing(stage.box) as kill:
            await kill.says("still bills")
            kill.process.send_signal(signal.SIGINT)
            assert await kill.ended() == 1
            assert "the kill stays in force: the daemon keeps trying to end them" in kill.err[-1]
        await market.still()
        await until(lambda: _nothing(market), "the daemon carries the kill on")


async def test_without_a_daemon_it_goes_on_itself(tmp_path: Path) -> None:
    async with stories.stage(tmp_path) as stage:
        market = stage.market
        async with stage.box.daemon() as daemon:
            await until(market.billing, "a rent")
            assert await daemon.stop() == 0
        await refuse(market, "DELETE /instances")
        async with killing(stage.box, "--json") as kill:
            await kill.says("still bills disk")
            await market.still()
            assert await kill.ended() == 0
        assert await market.billing() == []
