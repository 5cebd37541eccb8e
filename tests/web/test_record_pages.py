"""Events with filters, spend and savings on the page: the words, errors and figures of the verbs."""

import dataclasses
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest

from agent.domain.market.tenure import Tenure
from agent.domain.money import Usd
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.ledger.tables.spend_rows import SpendEntry
from agent.web.page import record_pages
from agent.web.reading import report_columns, spend_reports
from tests.support.builders import lease
from tests.support.scene import work
from tests.web.page import Served, served

ROW = re.compile(r"<tr[^>]*><td><time.*?</tr>", re.DOTALL)


async def filled(page: Served) -> None:
    """Write events of two workloads, two markets and two days."""
    now = page.world.clock.now()
    told = [
        Event(at=now - timedelta(hours=1), kind=EventKind.LEASE_PAUSED, workload="train", slot=0, market="vast"),
        Event(at=now - timedelta(hours=2), kind=EventKind.LEASE_GONE, workload="train", slot=1, market="runpod"),
        Event(at=now - timedelta(days=2), kind=EventKind.LEASE_GONE, workload="serve", slot=0, market="vast"),
        Event(at=now - timedelta(days=3), kind=EventKind("alert.old"), workload="former", market="mithril"),
    ]
    async with page.world.app.ledger.transaction() as tx:
        for number, event in enumerate(told):
            tx.append_event(dataclasses.replace(event, reason=f"number {number}"))


async def numbers(page: Served, query: str) -> list[int]:
    """Return which of those events are shown."""
    status, text = await page.get(f"/events?{query}")
    assert status == 200, text
    return sorted(int(each) for row in ROW.findall(text) for each in re.findall(r"number (\d)", row))


async def test_events_are_filtered_by_slot_kind_market_and_time(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        await filled(page)
        day = (page.world.clock.now() - timedelta(days=1)).date().isoformat()
        shown = {
            query: await numbers(page, query)
            for query in (
                "", "workload=train", "workload=train/1", "kind=lease.gone", "kind=lease.gone&kind=lease.paused",
                "market=runpod", "since=90m", "since=2d12h", f"since={day}", "workload=former", "kind=alert.old",
                "market=mithril", "workload=&kind=&market=&since=", "workload=serve&market=vast&kind=lease.gone",
            )
        }  # fmt: skip
    assert list(shown.values()) == [
        [0, 1, 2, 3], [0, 1], [1], [1, 2], [0, 1, 2], [1], [0], [0, 1, 2], [0, 1], [3], [3], [3], [0, 1, 2, 3], [2],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("workload=trian", "there is no workload 'trian'; known: train; did you mean train?"),
        ("workload=train/" + "9" * 20, f"there is no workload 'train/{'9' * 20}'; known: train"),
        ("workload=train/" + "9" * 4400, f"there is no workload 'train/{'9' * 4400}'; known: train"),
        ("kind=lease.intterupted", "kind: the ledger has no events of kind 'lease.intterupted'; did you mean"),
        ("market=vats", "market: there is no market 'vats'; did you mean vast?"),
        ("since=soon", "since: 'soon' is not an ISO date such as 2026-11-20 or 2026-11-20T08:00Z, or a time ago as 2h"),
        ("since=%3Cscript%3E", "since: '<script>' is not an ISO date"),
    ],
)
async def test_a_slip_in_a_filter_is_named_as_the_verb_names_it(tmp_path: Path, query: str, sentence: str) -> None:
    async with served(tmp_path) as page:
        status, text = await page.get(f"/events?{query}")
    escaped = sentence.replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
    assert status == 400
    assert f'role="alert">{escaped}' in text


async def test_older_events_keep_the_filter(tmp_path: Path) -> None:
    async with served(tmp_path) as page:
        now = page.world.clock.now()
        async with page.world.app.ledger.transaction() as tx:
            for number in range(250):
                kind = EventKind.LEASE_GONE if number % 2 else EventKind.LEASE_PAUSED
                tx.append_event(Event(at=now - timedelta(seconds=number), kind=kind, workload="train", slot=0))
        _, first = await page.get("/events?workload=train&kind=lease.gone")
        (older,) = re.findall(r'href="(/events\?[^"]+)" rel="next"', first)
        _, second = await page.get(older.replace("&amp;", "&"))
    assert (first.count(">lease.gone</td>"), first.count(">lease.paused</td>")) == (100, 0)
    assert (second.count(">lease.gone</td>"), second.count(">lease.paused</td>")) == (25, 0)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/spend", ""), ("/spend", "by=workload"), ("/spend", "by=cause"), ("/spend", "by=lease&since=2026-07-27"),
        ("/savings", ""), ("/savings", "by=gpu&baseline=aws"), ("/spend", "by=day&until=2026-07-27"),
    ],
)  # fmt: skip
async def test_spend_and_savings_have_the_figures_of_the_verbs(tmp_path: Path, path: str, query: str) -> None:
    async with served(tmp_path, workloads=(work(slots=2),)) as page:
        for _ in range(3):
            await page.world.cycle(minutes=20)
        page.world.clock.advance(30)
        usual = "by=day" if path == "/spend" else "by=month"
        asked = query or usual
        link = aiohttp.UnixConnector(str(page.socket))
        async with aiohttp.ClientSession(connector=link) as client, client.get(f"http://x{path}?{asked}") as answer:
            report = await answer.json()
        status, text = await page.get(f"{path}?{query}")
    columns = report_columns.SPEND if path == "/spend" else report_columns.savings(report)
    rows = [*report["rows"], {"key": "all", **report["total"]}]
    written = [[str(row["key"]), *(report_columns.cell(name, row[name]) for name in columns)] for row in rows]
    body = text[text.index("<tbody>") : text.index("</tbody>")]
    shown = [re.findall(r">([^<]+)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)]
    assert (status, shown) == (200, written)
    for title in columns.values():
        assert f">{title}</th>" in text
    if path == "/spend":
        together = report["total"]["dollars"] + report["unmetered_dollars"]
        since = f"${report['unmetered_dollars']:.4f} since the last metering, not in a row yet"
        assert f"${together:.4f} in all, with {since}" in text
        assert float(report["total"]["dollars"]) > 0 or "until" in query


async def test_a_report_says_which_days_and_rows_it_leaves_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spend_reports, "MOST_LINES", 3)
    monkeypatch.setattr(record_pages, "ROWS", 1)
    async with served(tmp_path) as page:
        today = page.world.clock.now().date()
        last = today - timedelta(days=1)
        async with page.world.app.ledger.transaction() as tx:
            for number in range(6):
                day = last - timedelta(days=number // 2)
                tx.open_lease(lease(number))
                tx.add_spend(SpendEntry(lease(number).lease_id, "train", "vast", Tenure.ON_DEMAND, day, gpu=Usd(10)))
        asked = f"by=lease&until={today.isoformat()}"
        link = aiohttp.UnixConnector(str(page.socket))
        async with aiohttp.ClientSession(connector=link) as client, client.get(f"http://x/spend?{asked}") as answer:
            report = await answer.json()
        _, text = await page.get(f"/spend?{asked}")
        _, savings = await page.get(f"/savings?{asked}")
        _, earlier = await page.get(f"/spend?until={last.isoformat()}")
    assert (report["cut_before"], report["most_lines"]) == (last.isoformat(), 3)
    assert [row["key"] for row in report["rows"]] == ["vast-0", "vast-1"]
    assert report["total"]["gpu_dollars"] == pytest.approx(20 / 1_000_000)
    for shown, verb in ((text, "spend"), (savings, "savings")):
        assert f"from {last.isoformat()} on: a report reads at most 3 lines of a lease and day" in shown
        assert f"the first 1 rows are left out; `gpubid {verb} --by lease` prints all" in shown
        assert ">vast-0</th>" not in shown
        assert ">vast-1</th>" in shown
    assert f"from {(last - timedelta(days=1)).isoformat()} on" in earlier


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/spend?by=moon", "--by: no report is grouped by that; write one of day"),
        ("/spend?since=soon", "since: &#39;soon&#39; is not an ISO date"),
        ("/savings?baseline=moon", "--baseline: no price of moon is known"),
    ],
)
async def test_a_report_that_there_is_not_says_what_to_ask(tmp_path: Path, path: str, sentence: str) -> None:
    async with served(tmp_path) as page:
        status, text = await page.get(path)
    assert status == 400
    assert sentence in text


async def test_a_filter_with_an_odd_kind_is_sent_back_as_text(tmp_path: Path) -> None:
    hostile = '"><script>document.title=1</script>'
    async with served(tmp_path) as page:
        _, text = await page.get(f"/events?kind={quote(hostile)}&workload={quote(hostile)}&market={quote(hostile)}")
    assert "<script>document" not in text
