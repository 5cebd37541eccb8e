"""The prices that machines paid, by period -> the bill by bid and UTC day, and the price that a bid pays now.

The market settles in arrears and gives no other bill of a bid: a period without an end is charged up to now.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from agent.domain.market.price import PaidPeriod
from agent.domain.money import FREE, Usd
from agent.markets import market_errors, text, tolerant_rows
from agent.markets.mithril import parse, prices
from agent.markets.port import Charge

_DAY = timedelta(days=1)
_WHAT = "The history of prices"


class _Period(msgspec.Struct):
    price_cents: float
    start_time: str
    end_time: str | None = None


class _Machine(msgspec.Struct):
    instance_fid: str
    events: list[object] = []
    bid_fid: str | None = None


class Owner(msgspec.Struct):
    """The owner of a key, and the organisation that pays."""

    fid: str
    organization_id: str


def owner(raw: bytes) -> Owner:
    """Return the owner of the key.

    Raises:
        Malformed: the answer does not name it.
    """
    return tolerant_rows.row(tolerant_rows.document(raw, "The account"), Owner, "The account")


def periods(raw: bytes, bid_fid: str) -> tuple[list[PaidPeriod], str]:
    """Return the periods of a bid's machines on one page, and the cursor of the next page, empty after the last.

    Raises:
        Malformed: the body is no such page, or a period of it cannot be read: a bill may not miss a line.
    """
    document = tolerant_rows.document(raw, _WHAT)
    rows = document.get("instances")
    if not isinstance(rows, list):
        raise market_errors.Malformed(f"{_WHAT} has no list of instances; try again later.")
    machines = (tolerant_rows.row(row, _Machine, _WHAT) for row in rows)
    mine = (one for one in machines if one.bid_fid in {bid_fid, None})
    return [_paid(event) for one in mine for event in one.events], parse.cursor(document, _WHAT)


def present(paid: Iterable[PaidPeriod]) -> PaidPeriod | None:
    """Return the youngest period without an end, or None."""
    return max((period for period in paid if period.end is None), key=lambda period: period.start, default=None)


def charges(instance_id: str, paid: Iterable[PaidPeriod], since: datetime, until: datetime) -> Iterator[Charge]:
    """Yield the bill of a bid by UTC day, within the span."""
    by_day: dict[datetime, int] = {}
    for period in paid:
        begin, end = max(period.start, since.astimezone(UTC)), min(period.end or until, until).astimezone(UTC)
        for day, seconds in _days(begin, end):
            by_day[day] = by_day.get(day, 0) + period.rate.over(seconds).micros
    for day in sorted(by_day):
        yield Charge(text.clean(instance_id, 64), Usd(by_day[day]), day)


def _days(begin: datetime, end: datetime) -> Iterator[tuple[datetime, float]]:
    while begin < end:
        day = begin.replace(hour=0, minute=0, second=0, microsecond=0)
        stop = min(day + _DAY, end)
        yield day, (stop - begin).total_seconds()
        begin = stop


def _paid(event: object) -> PaidPeriod:
    period = tolerant_rows.row(event, _Period, _WHAT)
    start, end = tolerant_rows.moment(period.start_time), tolerant_rows.moment(period.end_time)
    rate = FREE if period.price_cents == 0 else prices.of_cents(period.price_cents)
    if rate is None or start is None or (end is None and period.end_time is not None):
        raise market_errors.Malformed(f"{_WHAT} has a period that cannot be read; it is refused.")
    return PaidPeriod(rate, start, end)
