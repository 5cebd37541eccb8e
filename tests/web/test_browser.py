"""The page in a real Chromium: light, dark, on a phone, without script, by keyboard, and with hostile text on it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Route, async_playwright

from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from tests.support.programs import PATIENCE_SECONDS, until
from tests.web.page import TOKEN, Served, served

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"

PATIENCE_MILLISECONDS = 1000.0 * PATIENCE_SECONDS
Opening = Callable[..., Awaitable[Page]]
STILL = "Date.now = (then => () => then + (window.later || 0))(Date.now())"
"""The page's clock stands still but where it is moved: however slow the machine, nothing is redrawn under a test."""
TOLD = "(e => [e.checkVisibility(), e.textContent, document.title])(document.getElementById('stale'))"

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
    """Yield a function that opens a window without cookies of another, in which the clock of each page stands still."""
    opened: list[BrowserContext] = []

    async def window(**options: Any) -> Page:
        opened.append(await chromium.new_context(**options))
        opened[-1].set_default_timeout(PATIENCE_MILLISECONDS)
        await opened[-1].add_init_script(STILL)
        return await opened[-1].new_page()

    yield window
    for each in opened:
        await each.close()


async def moved_until_seen(tab: Page, milliseconds: int, selector: str) -> bool:
    """Move the page's clock unless a selector is visible: a message of the daemon may come in after the last move."""
    if await tab.locator(selector).first.is_visible():
        return True
    await moved(tab, milliseconds)
    return False


async def moved(tab: Page, milliseconds: int) -> None:
    """Move the page's clock, and give the page the time to look at it."""
    await tab.evaluate(f"window.later = (window.later || 0) + {milliseconds}")
    await tab.wait_for_timeout(2_000)


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


async def test_a_phone_scrolls_no_page_and_no_table(browser: Opening, page: Served) -> None:
    tab = await browser(viewport={"width": 360, "height": 740})
    await log_in(tab, page)
    lease = page.world.lease().lease_id
    for path in ("/", "/events", "/spend", "/savings", f"/lease/{lease}", "/confirm?verb=kill&target=fleet:all"):
        await tab.goto(page.url + path)
        assert await tab.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth"), path
        assert await tab.evaluate(
            "[...document.querySelectorAll('.wide')].every(e => e.scrollWidth <= e.clientWidth)"
        ), path


async def test_orders_are_on_a_screen_of_1280_pixels(browser: Opening, page: Served) -> None:
    tab = await browser(viewport={"width": 1280, "height": 900})
    await log_in(tab, page)
    for name in ("drain", "pause", "resume", "release"):
        box = await tab.get_by_role("link", name=name, exact=True).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= 1280


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
    assert await tab.locator("table").count() == 6
    assert await tab.locator(".chart svg[role=img]").get_attribute("aria-label")
    assert "running" in (await tab.locator("svg.band[role=img]").get_attribute("aria-label") or "")
    await tab.get_by_role("link", name="vast").first.click()
    assert await tab.locator("h1").inner_text()


async def log_in(tab: Page, page: Served) -> None:
    await tab.goto(page.url + "/login")
    await tab.get_by_label("Token").fill(TOKEN)
    await tab.keyboard.press("Enter")
    await tab.wait_for_url(page.url + "/")


@pytest.mark.parametrize(
    "options",
    [{"color_scheme": "light"}, {"color_scheme": "dark"}, {"viewport": {"width": 390, "height": 844}}],
    ids=["light", "dark", "phone"],
)
async def test_axe_finds_no_serious_problem(browser: Opening, page: Served, options: dict[str, Any]) -> None:
    axe = (files("axe_playwright_python") / "axe.min.js").read_text()
    page.world.app.stop_writing("so that there is an alert")
    tab = await browser(**options)
    found: list[str] = []

    async def look(path: str) -> None:
        await tab.goto(page.url + path)
        await tab.evaluate(axe)
        told = await tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert told["passes"], path
        found.extend(
            f"{path}: {each['id']} ({each['impact']}): {node['html'][:200]} {node['failureSummary'][:300]}"
            for each in told["violations"]
            for node in each["nodes"]
        )

    await look("/login")
    await look("/events?kind=nothing")
    await log_in(tab, page)
    lease = page.world.lease().lease_id
    for path in ("/", "/events", "/spend", "/savings", f"/lease/{lease}", "/lease/nobody"):
        await look(path)
    for verb, target in (("kill", "fleet:all"), ("release", "train/0"), ("drain", "train/0"), ("resume", "train/0")):
        await look(f"/confirm?verb={verb}&target={target}")
    assert found == []


async def focused(tab: Page) -> str:
    """Return the text or the name of what has the focus, nothing on the page itself."""
    return str(
        await tab.evaluate(
            "(e => e === document.body ? '' : (e.getAttribute('aria-label') || e.name || e.innerText || '').trim())"
            "(document.activeElement)"
        )
    )


async def tabbed(tab: Page, most: int = 200) -> list[str]:
    """Press the tabulator from the top of the page to its end; return what had the focus."""
    found: list[str] = []
    await tab.evaluate("document.activeElement.blur()")
    for _ in range(most):
        await tab.keyboard.press("Tab")
        name = await focused(tab)
        # After the last one comes the browser itself, or the first one again.
        if found and name in {"", found[0]}:
            break
        found.append(name)
    return found


async def test_the_tabulator_alone_reaches_every_link_field_and_button(browser: Opening, page: Served) -> None:
    tab = await browser()
    await log_in(tab, page)
    lease = page.world.lease().lease_id
    shown = "e => e.checkVisibility() && !e.disabled && e.type !== 'hidden'"
    for path in ("/", "/events", "/spend", "/savings", f"/lease/{lease}", "/confirm?verb=kill&target=fleet:all"):
        await tab.goto(page.url + path)
        there = await tab.evaluate(
            f"[...document.querySelectorAll('a[href], button, input, select')].filter({shown}).length"
        )
        regions = await tab.evaluate("document.querySelectorAll('[tabindex=\"0\"]').length")
        reached = await tabbed(tab)
        assert len(reached) == there + regions, (path, reached)
        assert all(reached), (path, reached)


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no script"])
async def test_a_release_is_given_by_keyboard_with_its_name_typed(
    browser: Opening, page: Served, has_script: bool
) -> None:
    tab = await browser(java_script_enabled=has_script)
    await log_in(tab, page)
    await tab.get_by_role("link", name="release").first.focus()
    await tab.keyboard.press("Enter")
    await tab.get_by_label("Type train/0 to release train/0").focus()
    await tab.keyboard.type("train/1")
    await tab.keyboard.press("Enter")
    await tab.get_by_role("alert").filter(has_text="Nothing was done").wait_for()
    assert page.world.lease().state is LeaseState.RUNNING
    await tab.get_by_label("Type train/0 to release train/0").focus()
    await tab.keyboard.type("train/0")
    await tab.keyboard.press("Enter")
    await tab.wait_for_selector("h1:has-text('Done')")
    assert all(lease.state is LeaseState.RELEASING for lease in page.world.leases())


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

    async def is_stale() -> bool:
        # The next beat takes everything back, so all is read at once.
        is_shown, text, title = await tab.evaluate(TOLD)
        if not is_shown:
            await moved(tab, 21_000)
            return False
        assert f"These figures are of {at} UTC" in text
        assert title.startswith("STALE")
        return True

    await until(is_stale, "that the page is stale")
    page.world.app.stop_writing("another daemon")
    page.feed.changed()
    await tab.wait_for_selector("#stale", state="hidden")
    await until(lambda: moved_until_seen(tab, 6_000, "section[aria-label=Alerts]"), "the alert")


async def test_a_redraw_that_failed_is_tried_again(browser: Opening, page: Served) -> None:
    tab = await browser()
    await tab.goto(page.url + "/")
    failed = asyncio.Event()

    async def cut(route: Route) -> None:
        failed.set()
        await route.abort()

    await tab.route(page.url + "/", cut)
    await tab.evaluate("window.later = 6000")
    await asyncio.wait_for(failed.wait(), PATIENCE_SECONDS)
    await tab.unroute(page.url + "/")
    page.world.app.stop_writing("another daemon")
    await until(lambda: moved_until_seen(tab, 6_000, "section[aria-label=Alerts]"), "the alert")
