"""The page by keyboard alone, in a real Chromium: every link and field, every order, the filters and the pages."""

import dataclasses

import pytest
from playwright.async_api import Page

from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import LeaseState
from tests.support.scene import work
from tests.web.browser import CHROMIUM, Opening, log_in, tab_to, tabbed
from tests.web.page import TOKEN, Served

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Debian's chromium is not here"),
    pytest.mark.asyncio(loop_scope="module"),
]


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


async def follow(tab: Page, name: str, title: str) -> None:
    """Follow a link or press a button, and wait for the screen with this title."""
    await tab_to(tab, name)
    await tab.keyboard.press("Enter")
    await tab.locator("h1").filter(has_text=title).wait_for()


async def order_by_keyboard(tab: Page, page: Served, link: str, title: str, typed: str = "", at: str = "/") -> set[str]:
    """Give an order with nothing but the keyboard, from its link on; return which words hold then."""
    await tab.goto(page.url + at)
    await follow(tab, link, title)
    if typed:
        await tab_to(tab, "typed")
        await tab.keyboard.type(typed)
    await follow(tab, f"Yes, {title.split(maxsplit=1)[0].lower()}", "Done")
    return {hold.word.value for hold in page.world.app.ledger.recollection(page.world.clock.now()).holds}


async def test_the_keyboard_alone_gives_every_order(browser: Opening, page: Served) -> None:
    tab = await browser()
    await log_in(tab, page)
    lease = page.world.lease()
    story = f"/lease/{lease.lease_id}"
    assert await order_by_keyboard(tab, page, "drain", "Drain train/0?") == {"drain"}
    assert await order_by_keyboard(tab, page, "resume", "Resume train/0?") == set()
    assert await order_by_keyboard(tab, page, "lock its host", f"Lock host:{lease.host_id}?", at=story) == {"lock"}
    assert await order_by_keyboard(tab, page, "lift", "Unlock ") == set()
    assert await order_by_keyboard(tab, page, "pause", f"Pause {lease.lease_id}?", at=story) == {"pause"}
    assert await order_by_keyboard(tab, page, "resume", f"Resume {lease.lease_id}?", at=story) == set()
    assert await order_by_keyboard(tab, page, "release", "Release train/0?", "train/0") == set()
    assert page.world.leases() == [] or page.world.lease().state is LeaseState.RELEASING
    fleet_id = page.world.app.ledger.fleet_id
    assert await order_by_keyboard(tab, page, "Kill everything", "Kill everything?", fleet_id) == {"kill"}
    await tab.goto(page.url + "/")
    await tab_to(tab, "Log out")
    await tab.keyboard.press("Enter")
    await tab.get_by_role("link", name="Log in to order").wait_for()


async def test_the_keyboard_alone_filters_and_turns_pages(browser: Opening, page: Served) -> None:
    now = page.world.clock.now()
    async with page.world.app.ledger.transaction() as tx:
        for number in range(120):
            tx.append_event(
                Event(at=now, kind=EventKind("alert.test"), workload="train", slot=0, evidence=f"no {number}")
            )
    tab = await browser()
    await tab.goto(page.url + "/events")
    await follow(tab, "older", "Events")
    await tab.wait_for_url("**/events?before=*")
    await tab_to(tab, "workload")
    await tab.keyboard.type("train/0")
    await tab_to(tab, "kind")
    await tab.keyboard.type("lease.running")
    await follow(tab, "Filter", "Events")
    await tab.wait_for_url("**/events?workload=train*")
    rows = await tab.locator("tbody tr").all_inner_texts()
    assert rows
    assert all("lease.running" in row for row in rows)
    await follow(tab, "Show all", "Events")
    await tab.wait_for_url("**/events")
    await tab.goto(page.url + "/spend")
    await tab_to(tab, "by")
    await tab.keyboard.type("workload")
    await follow(tab, "Show", "Spend")
    await tab.wait_for_url("**/spend?by=workload*")
    assert "train" in await tab.locator("tbody").inner_text()


async def test_the_keyboard_alone_turns_the_pages_of_a_large_fleet(browser: Opening, page: Served) -> None:
    app = page.world.app
    app.rules = dataclasses.replace(app.rules, workloads=(work(slots=60),))
    tab = await browser()
    await tab.goto(page.url + "/")
    await follow(tab, "further", "Fleet")
    await tab.wait_for_url("**/?page=2#slots")
    second = await tab.get_by_role("region", name="Slots", exact=True).inner_text()
    await follow(tab, "earlier", "Fleet")
    await tab.wait_for_url("**/?page=1#slots")
    first = await tab.get_by_role("region", name="Slots", exact=True).inner_text()
    assert "train/59" in second
    assert "train/59" not in first
    assert "train/0" in first


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
    rests = page.world.app.ledger.recollection(page.world.clock.now()).expiring
    assert [rest for rest in rests if "train/0" in rest.place[1]]


async def test_the_first_tab_skips_to_the_figures_and_tables_name_their_columns(browser: Opening, page: Served) -> None:
    tab = await browser()
    await tab.goto(page.url + "/")
    await tab.keyboard.press("Tab")
    assert await tab.evaluate("document.activeElement.className") == "skip"
    bare = "document.querySelectorAll('thead th:not([scope])').length"
    assert await tab.evaluate(bare) == 0
