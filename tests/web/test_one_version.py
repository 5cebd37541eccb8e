"""Feed, page and reports are made from one version of the ledger, also where a commit comes between their questions."""

import re
from pathlib import Path

import pytest

from agent.domain.money import MICROS
from agent.ledger.reader import Reader
from agent.web.feed import live_feed
from agent.web.reading import spend_reports
from tests.web.page import Served, served


async def interrupt(page: Served, monkeypatch: pytest.MonkeyPatch, *, times: int, minutes: float = 60) -> list[int]:
    """Let a metering be committed before each of the next answers about sums; return the list of their numbers.

    The daemon's memory has been read by then, so that the sums are of a later version.
    """
    asked, done = Reader.sums, list[int]()

    async def sums(self: Reader, *days: object) -> object:
        if len(done) < times:
            done.append(len(done))
            await page.world.cycle(minutes=minutes)
        return await asked(self, *days)  # type: ignore[arg-type]

    page.world.clock.advance(170.0)
    monkeypatch.setattr(Reader, "sums", sums)
    return done


async def test_a_document_counts_no_span_twice_that_is_metered_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as page:
        done = await interrupt(page, monkeypatch, times=1)
        fleet = (await page.feed.newest()).fleet
        now = page.world.clock.now()
    assert done
    assert fleet.as_of == now
    assert fleet.money.today_dollars > 0
    assert sum(each.today_dollars for each in fleet.money.workloads) == pytest.approx(fleet.money.today_dollars)


async def test_the_page_counts_no_span_twice_that_is_metered_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as page:
        done = await interrupt(page, monkeypatch, times=1)
        _, text = await page.get("/")
    assert done
    today = re.search(r'<h2>Today</h2><p class="big">\$([\d.]+)', text)
    of_work = re.search(r'<th scope="row">train</th>.*?data-label="Today" class="number">\$([\d.]+)', text)
    assert today is not None
    assert of_work is not None
    assert today[1] == of_work[1] != "0.00"


async def test_a_ledger_that_is_always_written_to_is_shown_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path) as page:
        done = await interrupt(page, monkeypatch, times=100, minutes=5)
        fleet = (await page.feed.newest()).fleet
    assert fleet.wanted == 1
    assert len(done) == live_feed.MOST_TRIES


@pytest.mark.parametrize("route", ["/spend", "/savings"])
async def test_a_report_misses_no_span_that_is_metered_while_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    async with served(tmp_path) as page:
        page.world.clock.advance(170.0)
        before, now = (await page.feed.newest()).fleet, page.world.clock.now()
        question = "lost_work" if route == "/spend" else "price_hours"
        asked, done = getattr(Reader, question), list[int]()

        async def interrupted(self: Reader, *more: object, **named: object) -> object:
            if not done:
                done.append(1)
                await page.world.cycle(minutes=60)
            return await asked(self, *more, **named)

        monkeypatch.setattr(Reader, question, interrupted)
        report = await spend_reports.answer(await page.world.app.ledger.reader(), route, {"by": "workload"}, now)
    total = report["total"]
    told = total["dollars"] + total.get("unpriced_dollars", 0.0) + report["unmetered_dollars"]
    assert done
    assert report["unmetered_dollars"] > 0
    assert round(told * MICROS) == round(before.money.today_dollars * MICROS)
