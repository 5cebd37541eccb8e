"""The savings of the first screen: the total of `gpubid savings` of this month, worked out beside whoever watches."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.ledger.ledger_errors import Code, LedgerError
from agent.ledger.reader import Reader
from agent.web.feed import month_savings
from agent.web.feed.money_model import Savings
from agent.web.page.frame import Frame
from agent.web.page.visitors import Visitors
from agent.web.reading import spend_reports
from tests.support.programs import PATIENCE_SECONDS
from tests.web.page import Served, served


async def saved(page: Served, other_than: Savings | None = None) -> Savings:
    """Return the savings of the feed once they are worked out anew."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (found := (await page.feed.newest()).fleet.money.savings) in (None, other_than):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert found is not None
    return found


async def test_the_first_screen_shows_the_total_of_the_verb_with_its_date(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        for _ in range(4):
            await page.world.cycle(minutes=20)
        _, before = await page.get("/")
        found = await saved(page)
        asked = spend_reports.ReportScope("month", found.since.date())
        report = await spend_reports.saved(await page.world.app.ledger.reader(), asked, None, found.as_of)
        _, board = await page.get("/")
    total = report["total"]
    assert "not computed yet" in before
    assert (found.saved_dollars, found.share) == (total["saved_dollars"], total["savings_ratio"])
    assert (found.spent_dollars, found.compared_dollars) == (total["dollars"], total["compared_dollars"])
    assert found.saved_dollars is not None
    assert found.share is not None
    assert (found.since.day, found.since.hour, found.since.month) == (1, 0, found.as_of.month)
    assert f"{found.saved_dollars:.2f} <small>{found.share * 100:.0f} %</small>".replace("-", "") in board
    assert found.as_of.isoformat() in board


@pytest.mark.parametrize(("saved", "shown"), [(-0.004, "$0.00"), (-0.5, "-$0.50"), (0.125, "$0.12"), (None, "\u2013")])
def test_what_was_lost_has_a_sign_and_nothing_has_none(saved: float | None, shown: str) -> None:
    template = Frame(Visitors(None, SystemClock().monotonic), SystemClock()).template("parts.html")
    assert str(template.module.dollars(saved)) == shown  # type: ignore[attr-defined]


async def test_it_is_worked_out_again_only_after_ten_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports, told = [], spend_reports.saved

    async def counted(*of: object) -> object:
        reports.append(of)
        return await told(*of)  # type: ignore[arg-type]

    monkeypatch.setattr(spend_reports, "saved", counted)
    async with served(tmp_path) as page:
        first = await saved(page)
        page.world.clock.advance(month_savings.EVERY.total_seconds() - 60)
        for _ in range(3):
            page.feed.changed()
            assert (await page.feed.newest()).fleet.money.savings == first
            await page.get("/")
        assert len(reports) == 1
        page.world.clock.advance(60)
        assert (await page.feed.newest()).fleet.money.savings == first
        second = await saved(page, other_than=first)
    assert len(reports) == 2
    assert second.as_of >= first.as_of + month_savings.EVERY


async def test_nobody_waits_for_it_and_an_unreadable_ledger_keeps_the_last_with_its_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, may_fail = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def busy() -> AsyncIterator[Reader]:
        asked.set()
        await may_fail.wait()
        raise LedgerError(Code.CORRUPT, "a damaged page")
        yield

    async with served(tmp_path) as page:
        first = await saved(page)
        monkeypatch.setattr(page.world.app.ledger, "archive", busy)
        page.world.clock.advance(month_savings.EVERY.total_seconds())
        async with asyncio.timeout(PATIENCE_SECONDS):
            during = (await page.feed.newest()).fleet
            await asked.wait()
            status, _ = await page.get("/")
            may_fail.set()
            while page.world.app._beside:  # noqa: ASYNC110 - it ends without a word
                await asyncio.sleep(0)
        page.feed.changed()
        after = (await page.feed.newest()).fleet
    assert status == 200
    assert (during.money.savings, after.money.savings) == (first, first)
    assert during.as_of > first.as_of
