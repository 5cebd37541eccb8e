"""The page in a real Chromium: light, dark, on a phone, without script, for axe-core, and with hostile text on it."""

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import ConsoleMessage, Page, Route

from agent.domain.slot_demand import Demand, DemandFrom
from agent.domain.work.array_terms import ArrayTerms
from agent.domain.work.workload import WorkloadKind
from tests.support.programs import PATIENCE_SECONDS, until
from tests.support.world import work
from tests.web.browser import CHROMIUM, HOSTILE, Opening, log_in
from tests.web.page import Served, served

TOLD = "(e => [e.checkVisibility(), e.textContent, document.title])(document.getElementById('stale'))"

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here"),
    pytest.mark.asyncio(loop_scope="module"),
]


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


@pytest.mark.parametrize("width", [320, 360])
async def test_a_phone_scrolls_no_page_and_no_table(browser: Opening, page: Served, width: int) -> None:
    tab = await browser(viewport={"width": width, "height": 740})
    await log_in(tab, page)
    lease = page.world.lease().lease_id
    _, board = await page.get("/")
    assert 'aria-label="On paper"' in board
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


async def test_the_day_of_a_slot_with_a_long_host_is_whole_on_a_screen_of_1200_pixels(
    browser: Opening, page: Served
) -> None:
    tab = await browser(viewport={"width": 1200, "height": 900})
    await log_in(tab, page)
    name = "mithril pool/us-central1-b/it_RrgkIZz6c9BZu5gi"
    await tab.evaluate("name => document.querySelector('td[data-label=Where] a').textContent = name", name)
    drawn = tab.locator(".chart.small").first
    box = await drawn.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 1200 - 16
    assert await drawn.evaluate("e => e.closest('.wide').scrollWidth <= e.closest('.wide').clientWidth")


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
    assert await tab.locator("table").count() == 7
    assert await tab.locator(".chart svg[role=img]").get_attribute("aria-label")
    assert "running" in (await tab.locator("svg.band[role=img]").get_attribute("aria-label") or "")
    await tab.get_by_role("link", name="vast").first.click()
    assert await tab.locator("h1").inner_text()


@pytest.mark.parametrize(
    "options",
    [
        {"color_scheme": "light"},
        {"color_scheme": "dark"},
        pytest.param({"viewport": {"width": 390, "height": 844}}, marks=pytest.mark.nightly),
    ],
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
    host = f"host:{page.world.lease().host_id}"
    for verb in ("release", "drain", "pause", "resume"):
        await look(f"/confirm?verb={verb}&target=train/0")
    for question in (
        f"verb=lock&target={host}",
        "verb=kill&target=fleet:all",
        "verb=kill&target=fleet:all&keep_disks=true",
    ):
        await look(f"/confirm?{question}")
    for path in (
        "/events?workload=train/0&since=2h",
        "/events?kind=alert.test",
        "/spend?by=workload",
        "/savings?by=gpu",
    ):
        await look(path)
    assert found == []


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


async def test_a_click_into_a_table_stops_no_redraw_and_a_control_in_use_only_delays_it(
    browser: Opening, page: Served
) -> None:
    """The region around a table took the focus, and the page showed old figures from then on without a word."""
    tab = await browser()
    await tab.goto(page.url + "/")
    await tab.get_by_role("region", name="Slots", exact=True).locator("td").first.click()
    assert await tab.evaluate("document.activeElement.ariaLabel") == "Slots"
    page.world.app.stop_writing("another daemon")
    await until(lambda: moved_until_seen(tab, 6_000, "section[aria-label=Alerts]"), "the alert")
    assert await tab.evaluate("document.activeElement.ariaLabel") == "Slots", "the keyboard goes on from there"
    await tab.locator("#main a").first.focus()
    await tab.evaluate("document.querySelector('section[aria-label=Alerts]').remove()")
    page.world.clock.advance(3600)
    page.feed.changed()
    for _ in range(2):
        assert not await moved_until_seen(tab, 6_000, "section[aria-label=Alerts]")
    assert not await tab.locator("section[aria-label=Alerts]").count()
    await tab.evaluate("document.activeElement.blur()")
    await until(lambda: moved_until_seen(tab, 6_000, "section[aria-label=Alerts]"), "the delayed redraw")


async def test_shared_rows_and_a_demand_fit_a_phone_and_axe_finds_no_serious_problem(
    browser: Opening, tmp_path: Path
) -> None:
    axe = (files("axe_playwright_python") / "axe.min.js").read_text()
    many = work("sweep", kind=WorkloadKind.BATCH, slots=60, array=ArrayTerms(2))
    asked = work("workers", slots=4, demand=Demand(1, DemandFrom.COMMAND, command=("echo", "1")))
    async with served(tmp_path, workloads=(many, asked), running=2) as page:
        tab = await browser(viewport={"width": 390, "height": 844})
        await log_in(tab, page)
        assert await tab.get_by_text("sweep/2 and 57 more").count() == 2, "among the slots, and in the plan"
        assert await tab.get_by_role("region", name="Demand").is_visible()
        assert await tab.evaluate("document.scrollingElement.scrollWidth <= window.innerWidth")
        await tab.evaluate(axe)
        told = await tab.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in told["violations"]] == []
