"""`make pictures`: take the pictures of README and handbook again, with Chromium: the page, and two reports of the lab.

The page is that of a rehearsed world, so the same program gives the same figures. `lab-report.png` is taken if
GPUBID_TRACES names a folder with the record `aws-2022`.
"""

import argparse
import asyncio
import io
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from playwright.async_api import Browser, async_playwright

from agent.decide.limits.limits import Limits
from agent.domain import money
from agent.simulator import climate_files
from tests.support.scene import MINUTE, work
from tests.web.browser import CHROMIUM, PATIENCE_MILLISECONDS, STILL
from tests.web.page import served

IMAGES = Path(__file__).parents[2] / "deploy" / "handbook" / "pages" / "images"
MISSING = "chromium is not here, so no picture was taken: run `make tools`, then `make pictures` again\n"
TRACES = os.environ.get("GPUBID_TRACES")
HOURS = 12.0
SCREENS: dict[str, tuple[Literal["light", "dark"], int]] = {
    "page-light.png": ("light", 1280),
    "page-dark.png": ("dark", 1280),
    "page-phone.png": ("light", 390),
}
"""The colour scheme and the width in pixels of each picture of the page."""
HEIGHT = 900
DRAWN = "[...document.querySelectorAll('.chart[data-trail]')].every(chart => chart.classList.contains('live'))"
BIDS = "lab report {} --problem bids --climates price_spike --seeds 405"
RECORD = "lab report {} --problem deadline --traces {} --cross-fit time --spot-price 0.9731 --on-demand-price 3.06"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures again, and return the exit code. Without Chromium, say so on standard error and write none."""
    parser = argparse.ArgumentParser(prog="python -m tests.web.pictures", description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES, help="the folder of the pictures")
    parser.add_argument("--hours", type=float, default=HOURS, help="simulated hours before the page is taken")
    parser.add_argument("--page-only", action="store_true", help="leave the reports of the lab as they are")
    options = parser.parse_args(arguments)
    if CHROMIUM is None:
        sys.stderr.write(MISSING)
        return 0
    asyncio.run(_take(options.to, options.hours, has_report=not options.page_only))
    return 0


async def _take(to: Path, hours: float, *, has_report: bool) -> None:
    async with async_playwright() as tools:
        browser = await tools.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_MILLISECONDS
        )
        with tempfile.TemporaryDirectory(prefix="gpubid-pictures-") as folder:
            await _page(browser, to, hours, Path(folder))
            if has_report:
                await _day_of_bids(browser, to, Path(folder))
            if has_report and TRACES is not None:
                await record_report(browser, to, Path(folder), Path(TRACES) / "aws-2022")
        await browser.close()


async def _page(browser: Browser, to: Path, hours: float, folder: Path) -> None:
    """Rehearse some hours of a calm market, and take the page without a login."""
    changes: dict[str, Any] = {
        "climate": climate_files.named("calm"),
        "seed": 7,
        "hosts": 200,
        "workloads": (work(slots=3),),
        "limits": Limits(per_day=money.usd("10"), per_month=money.usd("100")),
        "poll": MINUTE,
    }
    async with served(folder, **changes) as page:
        end = page.world.clock.monotonic() + hours * 3600
        while page.world.clock.monotonic() < end:
            await page.world.cycle(minutes=1)
        page.feed.changed()
        while (await page.feed.newest()).fleet.money.savings is None:  # noqa: ASYNC110 - they are computed beside us
            await asyncio.sleep(0.01)
        for name, (scheme, width) in SCREENS.items():
            window = await browser.new_context(color_scheme=scheme, viewport={"width": width, "height": HEIGHT})
            window.set_default_timeout(PATIENCE_MILLISECONDS)
            await window.add_init_script(STILL)
            tab = await window.new_page()
            await tab.goto(f"{page.url}/")
            await tab.wait_for_function(DRAWN)
            await tab.screenshot(path=to / name)
            sys.stdout.write(f"{to / name}\n")
            await window.close()


async def _day_of_bids(browser: Browser, to: Path, folder: Path) -> None:
    """Run the bench of one day of bids, and take the figure of that day from its report."""
    tab = await browser.new_page(color_scheme="dark", viewport={"width": 1280, "height": HEIGHT})
    await tab.goto(await _written(folder / "bids.html", BIDS.format(folder / "bids.html")))
    _save(await tab.locator("figure", has_text="One day of bidding").screenshot(), to / "lab-bids.png")


async def record_report(browser: Browser, to: Path, folder: Path, record: Path) -> None:
    """Run the bench of one job in one pool of a record, and take its whole report."""
    tab = await browser.new_page(color_scheme="light", viewport={"width": 1280, "height": HEIGHT})
    await tab.goto(await _written(folder / "record.html", RECORD.format(folder / "record.html", record)))
    _save(await tab.screenshot(full_page=True), to / "lab-report.png")


async def _written(html: Path, words: str) -> str:
    """Run the command that writes a report, and return the report's address."""
    program = await asyncio.create_subprocess_exec(sys.executable, "-m", "agent", *words.split())
    if await program.wait():
        raise SystemExit(f"gpubid {words} ended with {program.returncode}: its picture was not taken")
    return html.as_uri()


def _save(picture: bytes, to: Path) -> None:
    # Few colours are in it: with a palette the file has a third of the size.
    Image.open(io.BytesIO(picture)).quantize(256).save(to, optimize=True)
    sys.stdout.write(f"{to}\n")


if __name__ == "__main__":
    raise SystemExit(main())
