"""What `gpubid top` and the page cost the daemon that they are attached to: CPU that they add, and memory.

A real daemon in the storm of `tests/cockpit/`, at the pace of our clock. Stretches with nobody attached and with both
attached come by turns in one process, so that a busy machine slows both. The page is a headless Chromium. The first
stretches are not counted: a daemon that has just begun grows and works for itself.
"""

import asyncio
import contextlib
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from playwright.async_api import Page

from tests.bench import report
from tests.cockpit import watchers
from tests.cockpit.storm import CONFIG, MARKET, Storm
from tests.support import launch, programs

PAIRS = 5
STRETCH_SECONDS = 30.0
SETTLE_SECONDS = 45.0
MOST_CPU, MOST_MB = 0.02, 10.0
LOOK_SECONDS = 1.0
MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Stretch:
    """The share of a core that a process used in a stretch, and the most bytes it had in memory."""

    share: float
    memory: int


async def measure() -> bool:
    """Measure, print, and return whether the bounds hold."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("  no Debian chromium here: the daemon's cost of a page and of `gpubid top` is NOT measured")
        return True
    with tempfile.TemporaryDirectory(prefix="gpubid-bench-") as made:
        place = Path(made)
        async with programs.market(place, *MARKET) as market, watchers.opened(chromium) as tab:
            (place / "agent.toml").write_text(CONFIG.format(url=market.url))
            async with programs.daemon(place, GPUBID_COLD="1") as daemon:
                await daemon.until_told("READY=1")
                blowing = asyncio.create_task(Storm(market, seed=5).blow(3600))
                try:
                    return await _measure(place, daemon, tab)
                finally:
                    blowing.cancel()


async def _measure(place: Path, daemon: programs.Daemon, tab: Page) -> bool:
    url = await programs.until(lambda: re.search(r"metrics at (\S+)/metrics", "\n".join(daemon.out)), "its address")
    process = psutil.Process(daemon.process.pid)
    await asyncio.sleep(SETTLE_SECONDS)
    alone = [await _stretch(process)]
    attached, tops = [], []
    for _ in range(PAIRS):
        alone.append(await _stretch(process))
        async with _attached(place, tab, url[1]) as top:
            of_daemon, of_top = await asyncio.gather(_stretch(process), _stretch(psutil.Process(top.pid)))
        attached.append(of_daemon)
        tops.append(of_top)
    return _told(alone, attached, tops)


def _told(alone: Sequence[Stretch], attached: Sequence[Stretch], tops: Sequence[Stretch]) -> bool:
    """Print the added cost; the first stretch alone is from before anybody attached."""
    first, *others = alone
    added = [with_both.share - without.share for with_both, without in zip(attached, others, strict=True)]
    mean, spread = statistics.mean(added), f"{min(added):.2%} to {max(added):.2%} of a core in {PAIRS} pairs"
    usual = statistics.mean(each.share for each in others)
    grown = (max(each.memory for each in attached) - first.memory) / MEGABYTE
    print(f"`gpubid top` and the page at a daemon in a storm, {PAIRS} pairs of {STRETCH_SECONDS:.0f} s by turns")
    report.line("CPU of the daemon with nobody attached", f"{usual:.2%} of a core", "a poll every 5 s")
    is_quick = report.line("CPU that both add to it", f"{mean:.2%} of a core", spread, holds=mean <= MOST_CPU)
    report.line("CPU of `gpubid top` itself", f"{statistics.mean(each.share for each in tops):.2%} of a core", "")
    compared = f"over {first.memory / MEGABYTE:.0f} MB before, at most {MOST_MB:.0f} MB more"
    return report.line("memory that both add to it", f"{grown:.1f} MB", compared, holds=grown <= MOST_MB) and is_quick


async def _stretch(process: psutil.Process) -> Stretch:
    """Return the share of a core that a process used for a while, and the most memory it had."""
    began, used, most = time.monotonic(), _cpu(process), 0
    while time.monotonic() - began < STRETCH_SECONDS:
        await asyncio.sleep(LOOK_SECONDS)
        most = max(most, process.memory_info().rss)
    return Stretch((_cpu(process) - used) / (time.monotonic() - began), most)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextlib.asynccontextmanager
async def _attached(place: Path, tab: Page, url: str) -> AsyncIterator[launch.Process]:
    """Attach both, and detach them at the end."""
    top = watchers.TopWatch()
    async with top.running(place) as process:
        await tab.goto(url + "/")
        await programs.until(lambda: "figures of" in top.screen.lines[0], "the screen of top")
        try:
            yield process
        finally:
            await tab.goto("about:blank")
