"""Compares the ledger's count with each market's charges, UTC day by UTC day.

Invariants:
1. The ledger's own estimate is made and kept before a charge is read, and never touched again.
2. A day is compared once it has ended and its charges have had time to appear. If its charges could not be read, it is
   tried again.
3. Only instances of our leases are compared: other instances on the account are somebody else's.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta

import structlog

from agent.decide.operators import bill_drift
from agent.decide.operators.bill_drift import Drift
from agent.domain.money import ZERO, Usd, total
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind, LoggedKind
from agent.ledger.reader import Reader
from agent.ledger.store import Ledger
from agent.ledger.tables.market_bills import BillLine
from agent.markets import market_errors, port

log = structlog.get_logger("gpubid.billing")

SETTLES = timedelta(hours=2)
"""After midnight a bill may still grow, because markets write charges late."""
DAYS_BACK = 7
"""How far back a day that could not be compared is tried again."""
_DAY = timedelta(days=1)


async def reconcile(ledger: Ledger, markets: Mapping[str, port.Market], now: datetime) -> tuple[Drift, ...]:
    """Compare every ended day that is not compared yet; days of a silent market are compared later.

    Raises:
        LedgerError: an estimate or a charge could not be written down.
    """
    found: list[Drift] = []
    for name, market in sorted(markets.items()):
        for day in await _due(ledger, name, now):
            lines = await estimate(ledger, name, day, now)
            try:
                drift = await _charged(ledger, market, day, lines, now)
            except market_errors.MarketError as error:
                log.warning("charges.unread", market=name, day=day.isoformat(), code=error.code)
                break
            found.append(drift)
    return tuple(found)


async def last(reader: Reader, now: datetime) -> tuple[Drift, ...]:
    """Return the last compared day of each market, as the ledger has it."""
    today = now.astimezone(UTC).date()
    lines = await reader.bills(today - DAYS_BACK * _DAY, today + _DAY)
    return bill_drift.last((line.market, line.day, line.estimate, line.charged) for line in lines)


async def estimate(ledger: Ledger, market: str, day: date, now: datetime) -> list[BillLine]:
    """Record the ledger's count of a market's day, and return it as first recorded."""
    reader = await ledger.reader()
    counted = await reader.counted(market, day, day + _DAY)
    async with ledger.transaction() as tx:
        for instance_id, (lease_id, amount) in sorted(counted.items()):
            tx.add_estimate(BillLine(market, day, instance_id, lease_id, amount, now))
    return [line for line in await reader.bills(day, day + _DAY) if line.market == market]


async def _due(ledger: Ledger, market: str, now: datetime) -> list[date]:
    """Return the ended days with spend and without charges, oldest first."""
    last = (now.astimezone(UTC) - SETTLES).date()
    first = last - DAYS_BACK * _DAY
    reader = await ledger.reader()
    done = {line.day for line in await reader.bills(first, last) if line.market == market and line.charged is not None}
    return sorted({*await reader.days_of(market, first, last)} - done)


async def _charged(ledger: Ledger, market: port.Market, day: date, lines: Iterable[BillLine], now: datetime) -> Drift:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    charges = await market.charges(midnight, midnight + _DAY - timedelta(seconds=1))
    sums: dict[str, Usd] = {}
    for charge in charges:
        if charge.day.astimezone(UTC).date() == day:
            sums[charge.instance_id] = sums.get(charge.instance_id, ZERO) + charge.amount
    ours = list(lines)
    drift = Drift(
        market.name,
        day,
        total(line.estimate for line in ours),
        total(sums.get(line.instance_id, ZERO) for line in ours),
    )
    async with ledger.transaction() as tx:
        for line in ours:
            tx.add_charged(market.name, day, line.instance_id, sums.get(line.instance_id, ZERO), now)
        if drift.is_wide:
            tx.append_event(_event(drift, now))
    log.info(LoggedKind.BILL_COMPARED, market=market.name, day=day.isoformat(), share=round(drift.share, 4))
    return drift


def _event(drift: Drift, now: datetime) -> Event:
    return Event(
        at=now,
        kind=EventKind.BILL_DRIFTED,
        market=drift.market,
        amount=drift.amount,
        reason_code="drift",
        reason=drift.sentence(),
    )
