"""Inbox rows and signed webhooks: the market's own record, which is evidence and never a state."""

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from agent.domain import money
from agent.domain.market.interruption import MarketEvent, MarketEventKind
from agent.domain.money import UsdPerHour
from agent.markets import text, tolerant_rows
from agent.markets.vast import refusals

MARKET = "vast"
TIME, SIGNATURE = "X-Vast-Timestamp", "X-Vast-Signature-256"
"""The headers of a signed delivery."""
MAX_WEBHOOK_AGE_SECONDS = 300.0
"""A signed delivery older than this may be a replay."""

_KINDS = {
    "outbid": MarketEventKind.OUTBID,
    "instance_started": MarketEventKind.STARTED,
    "instance_resumed": MarketEventKind.RESUMED,
    "instance_stopped": MarketEventKind.STOPPED,
    "instance_offline": MarketEventKind.OFFLINE,
    "instance_online": MarketEventKind.ONLINE,
    "low_credit": MarketEventKind.LOW_CREDIT,
    "machine_maintenance": MarketEventKind.MAINTENANCE,
    "upcoming_downtime": MarketEventKind.MAINTENANCE,
    "near_end_date": MarketEventKind.NEAR_END,
}
_INSTANCE = re.compile(r"\binstance #?(\d{1,18})\b", re.IGNORECASE)
_OUTBID = re.compile(r"your bid was \$([\d.]{1,12})/hr.{0,40}?minimum bid is \$([\d.]{1,12})/hr", re.IGNORECASE)
_MOST = 100_000.0


class _Subject(msgspec.Struct):
    instance_id: int | None = None
    your_bid: float | None = None
    new_min_bid: float | None = None


class _Row(msgspec.Struct):
    event_id: str | int
    notif_type: str
    created_at: float
    associated_id: object = None
    message: str | None = None


class _Delivery(msgspec.Struct):
    event_id: str
    notif_type: str
    timestamp: float
    message: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")


_DELIVERY = msgspec.json.Decoder(_Delivery, strict=False)


def inbox(raw: bytes, since: datetime) -> Sequence[MarketEvent]:
    """Return the usable rows after `since`, oldest first, each event once; an unreadable row proves nothing.

    Raises:
        Malformed: the body is no inbox.
    """
    refusals.check_success(tolerant_rows.document(raw, "The inbox").get("success"), "the inbox")
    rows = tolerant_rows.rows(raw, "notifications", "The inbox")
    events = {event.event_id: event for event in _readable(rows) if event.at > since}
    return sorted(events.values(), key=lambda event: (event.at, event.event_id))


def webhook(raw: bytes, timestamp: str, signature: str, secret: bytes, now: datetime) -> MarketEvent | None:
    """Return the event of a delivery, or None unless it is signed with our secret and fresh.

    The keys of its `data` are not documented. Figures are read from `data` if it names an instance, else from the
    sentence.
    """
    if not is_signed(raw, timestamp, signature, secret):
        return None
    try:
        age = now.timestamp() - float(timestamp)
        delivery = _DELIVERY.decode(raw)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    if not abs(age) <= MAX_WEBHOOK_AGE_SECONDS:
        return None
    data = _decoded(delivery.data)
    return _event(_Row(delivery.event_id, delivery.notif_type, delivery.timestamp, data, delivery.message))


def is_signed(raw: bytes, timestamp: str, signature: str, secret: bytes) -> bool:
    """Return whether the signature over timestamp and raw body uses our secret; compared in constant time."""
    wanted = "sha256=" + hmac.new(secret, _header(timestamp) + b"." + raw, hashlib.sha256).hexdigest()
    return bool(secret) and hmac.compare_digest(wanted.encode(), _header(signature))


def signed(raw: bytes, at: datetime, secret: str) -> dict[str, str]:
    """Return the headers with which the market would sign a delivery, for a test of the path to the daemon."""
    stamp = str(int(at.timestamp()))
    mark = hmac.new(secret.encode(), stamp.encode() + b"." + raw, hashlib.sha256).hexdigest()
    return {TIME: stamp, SIGNATURE: f"sha256={mark}", "Content-Type": "application/json"}


def trial(at: datetime) -> bytes:
    """Return the body of a delivery that reports a test."""
    body = {"event_id": f"test-{at.timestamp()}", "notif_type": "client:test", "message": "a test of gpubid"}
    return msgspec.json.encode(body | {"timestamp": at.timestamp(), "user_id": 0, "subject": "test"})


def _header(value: str) -> bytes:
    """Return a header's value as received: a byte that is not UTF-8 is kept as a surrogate."""
    return value.encode("utf-8", "surrogateescape")


def _readable(rows: Iterable[object]) -> Iterable[MarketEvent]:
    for row in rows:
        try:
            event = _event(msgspec.convert(row, _Row, strict=False))
        except (msgspec.ValidationError, ValueError, OverflowError, RecursionError):
            continue
        if event is not None:
            yield event


def _event(row: _Row) -> MarketEvent | None:
    if not 0 < row.created_at < datetime(2100, 1, 1, tzinfo=UTC).timestamp():
        return None
    subject = _subject(row.associated_id, row.message or "")
    if subject is None:
        return None
    kind = row.notif_type.removeprefix("client:")
    return MarketEvent(
        event_id=text.clean(str(row.event_id), 64),
        market=MARKET,
        kind=_KINDS.get(kind, MarketEventKind.OTHER),
        instance_id="" if subject.instance_id is None else str(subject.instance_id),
        at=datetime.fromtimestamp(row.created_at, UTC),
        your_bid=_rate(subject.your_bid),
        new_floor=_rate(subject.new_min_bid),
    )


def _decoded(data: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None


def _subject(keys: object, message: str) -> _Subject | None:
    """Return what a row is about: by its keys if they name an instance, else by its sentence.

    It is None if the keys name an instance that cannot be read, and the sentence names none.
    """
    said = _said(message)
    if not isinstance(keys, dict):
        return said
    named = tolerant_rows.row(keys, _Subject, "The inbox")
    if named.instance_id is None:
        return None if keys.get("instance_id") is not None and said.instance_id is None else said
    if said.instance_id != named.instance_id:
        return named
    bid = said.your_bid if named.your_bid is None else named.your_bid
    floor = said.new_min_bid if named.new_min_bid is None else named.new_min_bid
    return _Subject(named.instance_id, bid, floor)


def _said(message: str) -> _Subject:
    named = _INSTANCE.search(message[:1000])
    prices = _OUTBID.search(message[:1000])
    return _Subject(
        int(named[1]) if named else None,
        _decimal(prices[1]) if prices else None,
        _decimal(prices[2]) if prices else None,
    )


def _decimal(digits: str) -> float | None:
    try:
        return float(digits.rstrip("."))
    except ValueError:
        return None


def _rate(dollars: float | None) -> UsdPerHour | None:
    return money.per_hour(dollars) if dollars is not None and 0.0 <= dollars <= _MOST else None
