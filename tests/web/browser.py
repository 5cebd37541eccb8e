"""Actions of the page's tests in a browser: they log in, and press the tabulator."""

import shutil
from collections.abc import Awaitable, Callable

from playwright.async_api import Page

from tests.support.programs import PATIENCE_SECONDS
from tests.web.page import TOKEN, Served

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"

PATIENCE_MILLISECONDS = 1000.0 * PATIENCE_SECONDS
Opening = Callable[..., Awaitable[Page]]
STILL = "Date.now = (then => () => then + (window.later || 0))(Date.now())"
"""The page's clock runs only when it is moved: however slow the machine, nothing is redrawn under a test."""


async def log_in(tab: Page, page: Served) -> None:
    await tab.goto(page.url + "/login")
    await tab.get_by_label("Token").fill(TOKEN)
    await tab.keyboard.press("Enter")
    await tab.wait_for_url(page.url + "/")


async def focused(tab: Page) -> str:
    """Return the text or the name of the element with the focus, nothing on the page itself."""
    return str(
        await tab.evaluate(
            "(e => e === document.body ? '' : (e.getAttribute('aria-label') || e.name || e.innerText || '').trim())"
            "(document.activeElement)"
        )
    )


async def tabbed(tab: Page, most: int = 200) -> list[str]:
    """Press the tabulator from the top of the page to its end; return the elements that had the focus."""
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


async def tab_to(tab: Page, name: str, most: int = 200) -> None:
    """Press the tabulator until the element of this name has the focus."""
    found: list[str] = []
    while name not in found:
        assert len(found) < most, (name, found)
        await tab.keyboard.press("Tab")
        found.append(await focused(tab))
