"""Pending price increases that a host asks for a leased instance, as the vendor's own client reads them.

Nothing is accepted or rejected here. If nobody accepts a rise, the price stays and the contract ends at its old date;
the workload is moved by then.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from agent.domain import money
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.markets import market_errors, text
from agent.markets.vast import refusals

MARKET = "vast"
_MOST = 100_000.0
"""Dollars per GPU and hour above which a price is absurd."""
_LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()


class _Row(msgspec.Struct):
    pending_price_increase_id: int
    contract_id: int
    new_gpu_costpersec: float | None = None
    created_at: float | None = None


class _Envelope(msgspec.Struct):
    success: bool | None = None
    pending_price_increases: list[msgspec.Raw] | None = None


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_ROW = msgspec.json.Decoder(_Row, strict=False)


def rises(raw: bytes, now: datetime) -> Sequence[MarketEvent]:
    """Return the pending rises in the order of their ids; an unreadable row is skipped.

    Raises:
        Malformed: the body is no such list, or the market refused the question with status 200: nothing is known.
    """
    try:
        answered = _ENVELOPE.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise market_errors.Malformed(f"The pending rises are no list of vast's: {text.clean(str(error))}") from None
    refusals.check_success(answered.success, "the pending rises")
    rows = answered.pending_price_increases
    if rows is None:
        raise market_errors.Malformed("vast answered the pending rises without their list; it is not taken for none.")
    return sorted(_readable(rows, now), key=lambda event: event.event_id)


def _readable(rows: Iterable[msgspec.Raw], now: datetime) -> Iterable[MarketEvent]:
    for raw in rows:
        try:
            row = _ROW.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            continue
        hourly = None if row.new_gpu_costpersec is None else row.new_gpu_costpersec * 3600
        created = row.created_at
        yield MarketEvent(
            event_id=f"rise-{row.pending_price_increase_id}",
            market=MARKET,
            kind=MarketEventKind.PRICE_RISE,
            instance_id=str(row.contract_id),
            at=datetime.fromtimestamp(created, UTC) if created is not None and 0 < created < _LATEST else now,
            new_rate=money.per_hour(hourly) if hourly is not None and 0.0 <= hourly <= _MOST else None,
        )
