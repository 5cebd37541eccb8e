"""The page in a real Chromium: light, dark, on a phone, without script, by keyboard, and with hostile text on it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Route, async_playwright

from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from tests.support.programs import PATIENCE_SECONDS
from tests.web.page import TOKEN, Served, served

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"

PATIENCE_MILLISECONDS = 1000.0 * PATIENCE_SECONDS
Opening = Callable[..., Awaitable[Page]]

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here"),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(loop_scope="module")
async def page(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as shown:
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
    """Yield a function that opens a window without cookies of another."""
    opened: list[BrowserContext] = []

    async def window(**options: Any) -> Page:
        opened.append(await chromium.new_context(**options))
        opened[-1].set_default_timeout(PATIENCE_MILLISECONDS)
        return await opened[-1].new_page()

    yield window
    for each in opened:
        await each.close()


async def ground(tab: Page) -> str:
    return str(await tab.evaluate("getComputedStyle(document.body).backgroundColor"))


async def test_it_is_readable_in_light_and_dark_and_says_nothing_on_the_console(browser: Opening, page: Served) -> None:
    grounds: list[str] = []
    complaints: list[str] = []

    def complained(told: ConsoleMessage) -> None:
        complaints.append(told.text)

    for scheme in ("light", "dark"):
        tab = await browser(color_scheme=scheme)
        tab.on("console", complained)
        await tab.goto(page.url + "/")
        grounds.append(await ground(tab))
        assert await tab.locator("h1").inner_text()
    assert grounds == ["rgb(255, 255, 255)", "rgb(13, 17, 23)"]
    assert complaints == []


async def test_a_phone_scrolls_tables_and_not_the_page(browser: Opening, page: Served) -> None:
    tab = await browser(viewport={"width": 360, "height": 740})
    for path in ("/", "/events", f"/lease/{page.world.lease().lease_id}"):
        await tab.goto(page.url + path)
        assert await tab.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth"), path


async def test_hostile_text_is_text(browser: Opening, page: Served) -> None:
    tab = await browser()
    await tab.goto(page.url + "/events")
    assert "Events" in await tab.title()
    assert await tab.locator("tbody img").count() == 0
    assert HOSTILE in await tab.locator("tbody").inner_text()


async def test_the_pointer_shows_the_figures_under_it_and_words_stay_for_who_sees_no_canvas(
    browser: Opening, page: Served
) -> None:
    lease = page.world.lease()
    tab = await browser()
    for path in (f"/lease/{lease.lease_id}", "/"):
        await tab.goto(page.url + path)
        plot = tab.locator(".chart .u-over")
        assert await tab.locator(".chart .uplot[role=img]").get_attribute("aria-label")
        await plot.hover()
        await tab.wait_for_function("document.querySelector('.u-legend').innerText.includes('$')")
        legend = await tab.locator(".u-legend").inner_text()
        assert f"${lease.gpu_rate.dollars:.4f}" in legend, legend
        assert "interrupted" in legend


async def test_without_script_every_figure_is_there(browser: Opening, page: Served) -> None:
    tab = await browser(java_script_enabled=False)
    await tab.goto(page.url + "/")
    assert await tab.locator("table").count() == 5
    assert await tab.locator(".chart svg[role=img]").get_attribute("aria-label")
    assert "running" in (await tab.locator("svg.band[role=img]").get_attribute("aria-label") or "")
    await tab.get_by_role("link", name="vast").first.click()
    assert await tab.locator("h1").inner_text()


async def test_an_order_is_given_by_keyboard_and_confirmed(browser: Opening, page: Served) -> None:
    tab = await browser()
    await tab.goto(page.url + "/login")
    await tab.get_by_label("Token").fill(TOKEN)
    await tab.keyboard.press("Enter")
    await tab.get_by_role("link", name="drain").first.focus()
    await tab.keyboard.press("Enter")
    await tab.get_by_role("button", name="Yes, drain").focus()
    await tab.keyboard.press("Enter")
    await tab.wait_for_selector("h1:has-text('Done')")
    rests = page.world.app.ledger.recollection(page.world.clock.now()).rests
    assert [rest for rest in rests if "train/0" in rest.place[1]]


async def test_the_first_tab_skips_to_the_figures_and_tables_name_their_columns(browser: Opening, page: Served) -> None:
    tab = await browser()
    await tab.goto(page.url + "/")
    await tab.keyboard.press("Tab")
    assert await tab.evaluate("document.activeElement.className") == "skip"
    bare = "document.querySelectorAll('thead th:not([scope])').length"
    assert await tab.evaluate(bare) == 0


async def test_a_silent_daemon_makes_the_page_stale_within_thirty_seconds_and_a_change_is_drawn(
    browser: Opening, page: Served
) -> None:
    tab = await browser()
    await tab.goto(page.url + "/")
    assert await tab.locator("#stale").is_hidden()
    at = (await tab.locator("h1 time").get_attribute("datetime") or "")[:19].replace("T", " ")
    # The page's clock stands still but where it is moved: however slow the machine, it shows 21 s of silence.
    await tab.evaluate("Date.now = (then => () => then + (window.later || 0))(Date.now())")
    await tab.evaluate("window.later = 21000")
    await tab.wait_for_selector("#stale:visible")
    assert f"These figures are of {at} UTC" in await tab.locator("#stale").inner_text()
    assert (await tab.title()).startswith("STALE")
    page.world.app.stop_writing("another daemon")
    page.feed.changed()
    await tab.wait_for_selector("#stale", state="hidden")
    await tab.evaluate("window.later = 27000")
    await tab.wait_for_selector("section[aria-label=Alerts]")


async def test_a_redraw_that_failed_is_tried_again(browser: Opening, page: Served) -> None:
    tab = await browser()
    await tab.goto(page.url + "/")
    await tab.evaluate("Date.now = (then => () => then + (window.later || 0))(Date.now())")
    failed = asyncio.Event()

    async def cut(route: Route) -> None:
        failed.set()
        await route.abort()

    await tab.route(page.url + "/", cut)
    await tab.evaluate("window.later = 6000")
    await asyncio.wait_for(failed.wait(), PATIENCE_SECONDS)
    await tab.unroute(page.url + "/")
    page.world.app.stop_writing("another daemon")
    await tab.evaluate("window.later = 12000")
    await tab.wait_for_selector("section[aria-label=Alerts]")
