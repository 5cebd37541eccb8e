"""A headless Chromium for the tests of the page, and a page for it: one start serves all tests of a module."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from tests.support.scene import work
from tests.web.browser import CHROMIUM, HOSTILE, PATIENCE_MILLISECONDS, STILL, Opening
from tests.web.page import Served, served


@pytest_asyncio.fixture(loop_scope="module")
async def page(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path, workloads=(work(shadow=("ondemand",)),)) as shown:
        told = Event(at=shown.world.clock.now(), kind=EventKind("alert.test"), evidence=HOSTILE, host_id=HOSTILE[:40])
        async with shown.world.app.ledger.transaction() as tx:
            tx.append_event(told)
        yield shown


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as tools:
        started = await tools.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE_MILLISECONDS
        )
        try:
            yield started
        finally:
            await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def browser(chromium: Browser) -> AsyncIterator[Opening]:
    """Yield a function that opens a window without cookies of another, in which the clock of each page does not run."""
    opened: list[BrowserContext] = []

    async def window(**options: Any) -> Page:
        opened.append(await chromium.new_context(**options))
        opened[-1].set_default_timeout(PATIENCE_MILLISECONDS)
        await opened[-1].add_init_script(STILL)
        return await opened[-1].new_page()

    yield window
    for each in opened:
        await each.close()
