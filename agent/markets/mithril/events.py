"""The market's history of a bid -> our events, and the instant at which a preempted machine ends."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.markets import market_errors, tolerant_rows
from agent.markets.mithril import parse, prices, rules

_KINDS = {
    "Allocated": MarketEventKind.STARTED,
    # A reservation takes capacity, which raises the price to win: then too a higher limit would have kept it.
    "Preempted": MarketEventKind.BID_LOST,
    "Paused": MarketEventKind.STOPPED,
    "Terminated": MarketEventKind.STOPPED,
}
"""Every other event changes nothing that runs: a resumed bid waits for an auction like a placed one."""
_PREEMPTING = "STATUS_PREEMPTING"
_MOST = 2_000
_WHAT = "The history of a bid"
_MOST_AHEAD = timedelta(minutes=1)


class _Event(msgspec.Struct):
    timestamp: str
    event_type: str
    limit_price: str | None = None


class _Status(msgspec.Struct):
    timestamp: str
    status: str


def history(raw: bytes, bid_fid: str) -> list[MarketEvent]:
    """Return the readable events of a bid, the oldest first.

    Raises:
        Malformed: the body is no history of that bid.
    """
    document = tolerant_rows.document(raw, _WHAT)
    rows = document.get("events")
    if not isinstance(rows, list) or document.get("bid_fid", bid_fid) != bid_fid:
        raise market_errors.Malformed(f"{_WHAT} has no list of events; try again later.")
    found = [event for row in rows[-_MOST:] if (event := _event(row, bid_fid)) is not None]
    return sorted(found, key=lambda event: event.at)


def was_allocated(events: Sequence[MarketEvent]) -> bool:
    """Return whether a bid ever had a machine."""
    return any(event.kind is MarketEventKind.STARTED for event in events)


def notice_at(raw: bytes, now: datetime) -> datetime | None:
    """Return when a machine under notice ends, or None if its history shows no notice that is not over.

    Raises:
        Malformed: the body is no history.
    """
    rows = tolerant_rows.document(raw, _WHAT).get("instances")
    if not isinstance(rows, list):
        raise market_errors.Malformed(f"{_WHAT} has no list of instances; try again later.")
    events = [event for row in rows if isinstance(row, dict) for event in row.get("events") or ()]
    begun = [at for event in events[-_MOST:] if (at := _preempted_at(event)) is not None]
    since = max((at for at in begun if now - rules.RULES.notice <= at <= now + _MOST_AHEAD), default=None)
    return None if since is None else since + rules.RULES.notice


def _preempted_at(row: object) -> datetime | None:
    try:
        event = tolerant_rows.row(row, _Status, _WHAT)
    except market_errors.Malformed:
        return None
    return tolerant_rows.moment(event.timestamp) if event.status == _PREEMPTING else None


def _event(row: object, bid_fid: str) -> MarketEvent | None:
    try:
        event = tolerant_rows.row(row, _Event, _WHAT)
    except market_errors.Malformed:
        return None
    at, kind = tolerant_rows.moment(event.timestamp), _KINDS.get(event.event_type)
    if at is None or kind is None:
        return None
    return MarketEvent(
        event_id=f"{bid_fid}@{at.timestamp():.3f}/{kind.value}",
        market=parse.MARKET,
        kind=kind,
        instance_id=bid_fid,
        at=at,
        your_bid=prices.of_text(event.limit_price),
    )
