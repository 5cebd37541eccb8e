"""The ledger's records on the page: events with filters, and spend and savings with the figures of the verbs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aiohttp import web

from agent.baselines import baseline_loading
from agent.config import time_words
from agent.decide.accounting import accounts
from agent.domain.record.event_kind import EventKind
from agent.web.daemon_port import Orders
from agent.web.page import dashboard
from agent.web.page.frame import Frame
from agent.web.reading import event_filter, report_columns, spend_reports
from agent.web.reading.event_filter import FilterError
from agent.web.reading.spend_reports import ReportError

EVENTS = 100
ROWS = 500
"""The most rows of a report on the page. The verbs print all rows."""


class RecordPages:
    """The routes of events, spend and savings."""

    def __init__(self, app: Orders, frame: Frame) -> None:
        """Read the ledger of `app`."""
        self._app = app
        self._frame = frame

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get("/events", self._events),
            web.get("/spend", self._spend),
            web.get("/savings", self._savings),
        ]

    async def _events(self, request: web.Request) -> web.Response:
        asked, now, workloads = request.query.get("before"), self._app.clock.now(), self._app.rules.workloads
        before = _instant(asked) if asked else None
        if asked and before is None:
            sentence = "`before` is not an instant such as 2026-11-21T00:00:00+00:00."
            return self._frame.said(request, "Bad address", sentence, 400)
        wanted, wrong = event_filter.read(request.query), ""
        events = []
        try:
            async with self._app.ledger.archive() as reader:
                events = await wanted.events(reader, now, before, EVENTS)
            wanted.refuse_unknown(events, workloads, self._app.markets)
        except FilterError as error:
            wrong = str(error)
        query = wanted.query()
        older = f"{query}&" if query else ""
        values = {
            "events": [dashboard.event(each) for each in events],
            "before": events[-1].at.isoformat() if len(events) == EVENTS else "",
            "query": older,
            "wanted": wanted,
            "wrong": wrong,
            "kinds": list(EventKind),
            "markets": sorted(self._app.markets),
            "places": [name for work in workloads for name in (work.name, *map(str, work.places))][:EVENTS],
        }
        return self._frame.shown(request, "events.html", values, 400 if wrong else 200)

    async def _spend(self, request: web.Request) -> web.Response:
        return await self._report(request, "Spend", spend_reports.GROUPS, "day")

    async def _savings(self, request: web.Request) -> web.Response:
        return await self._report(request, "Savings", tuple(accounts.KEYS), "month")

    async def _report(self, request: web.Request, title: str, groups: tuple[str, ...], usual: str) -> web.Response:
        asked, now, wrong = dict(request.query), self._app.clock.now(), ""
        query = {"by": asked.get("by") or usual} | {key: asked[key] for key in ("baseline",) if asked.get(key)}
        report: Mapping[str, Any] | None = None
        try:
            for name in ("since", "until"):
                query |= {name: _day(name, asked[name], now)} if asked.get(name) else {}
            async with self._app.ledger.archive() as reader:
                units = spend_reports.units_of(self._app.rules.workloads)
                report = await spend_reports.answer(reader, request.path, query, now, units)
        except ReportError as error:
            wrong = str(error)
        values = {
            "title": title,
            "wrong": wrong,
            "asked": {name: asked.get(name, "") for name in ("since", "until", "baseline")} | {"by": query["by"]},
            "groups": groups,
            "clouds": sorted(baseline_loading.load().clouds) if title == "Savings" else [],
            **(_table(report, now) if report is not None else {"columns": [], "rows": [], "as_of": now, "notes": []}),
        }
        return self._frame.shown(request, "report.html", values, 400 if wrong else 200)


def _table(report: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the table of a report, with the notes below it."""
    columns = report_columns.of(report)
    left = max(len(report["rows"]) - ROWS, 0)
    rows = [*report["rows"][left:], {"key": "all", **report["total"]}]
    all_of = "gpubid savings" if "against" in report else "gpubid spend"
    over = [f"the first {left:,} rows are left out; `{all_of} --by {report['by']}` prints all"] if left else []
    return {
        "columns": list(columns.values()),
        "rows": [(str(row["key"]), [report_columns.cell(name, row[name]) for name in columns]) for row in rows],
        "as_of": now,
        "notes": [*over, *report_columns.notes(report)],
    }


def _day(name: str, text: str, now: datetime) -> str:
    at = time_words.instant(text, now)
    if at is None:
        raise ReportError(time_words.refusal(name, text))
    return at.date().isoformat()


def _instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None
