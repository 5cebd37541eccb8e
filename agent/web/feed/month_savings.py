"""This month's savings: the cost of the useful hours, beside their price on demand.

1. They are the total of `gpubid savings` since the first of the month (UTC), as of their own instant.
2. They are computed beside the cycles, at most once in `EVERY`, and only while there are readers. No reader waits.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from agent.ledger.ledger_errors import LedgerError
from agent.web.daemon_port import Orders
from agent.web.feed.money_model import Savings
from agent.web.reading import spend_reports

EVERY = timedelta(minutes=10)
"""A month's prices of one model may take a second of processor time."""


class MonthSavings:
    """Keeps the last figures, and computes new ones when they are old."""

    def __init__(self, app: Orders, changed: Callable[[], None]) -> None:
        """Read the ledger of `app`, and call `changed` after new figures."""
        self._app = app
        self._changed = changed
        self._last: Savings | None = None
        self._began_at: float | None = None

    def last(self) -> Savings | None:
        """Return the last figures, or None before the first. If they are old, begin to compute new ones."""
        now = self._app.clock.monotonic()
        if self._began_at is None or now - self._began_at >= EVERY.total_seconds():
            self._began_at = now
            self._app.beside(self._work_out(self._app.clock.now()))
        return self._last

    async def _work_out(self, now: datetime) -> None:
        first = now.date().replace(day=1)
        try:
            async with self._app.ledger.archive() as reader:
                report = await spend_reports.saved(reader, spend_reports.ReportScope("month", first), None, now)
        except LedgerError:
            # The feed reads the same ledger and reports the error. These figures keep their date.
            return
        total, since = report["total"], report["cut_before"] or first.isoformat()
        self._last = Savings(
            datetime.fromisoformat(since).replace(tzinfo=UTC),
            now,
            total["saved_dollars"],
            total["savings_ratio"],
            total["dollars"],
            total["compared_dollars"],
            total["unpriced_dollars"],
            report["unpriced"],
        )
        self._changed()
