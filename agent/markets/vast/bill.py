"""The market's own bill and account record -> our charges, account id and credit."""

import re
from datetime import UTC, datetime

import msgspec

from agent.domain import money
from agent.domain.money import Usd
from agent.markets import market_errors, text, tolerant_rows
from agent.markets.port import Charge
from agent.markets.vast import refusals

_INSTANCE = re.compile(r"instance-(\d{1,18})")
_MOST = 1e7
"""Dollars on one line above which the line is wrong."""
_LATEST_SECONDS = datetime(2100, 1, 1, tzinfo=UTC).timestamp()


class _Item(msgspec.Struct):
    amount: float


class _Line(msgspec.Struct):
    amount: float
    start: float
    source: str | None = None
    items: list[_Item] | None = None


class ChargePage(msgspec.Struct):
    """One page of the bill."""

    results: list[_Line]
    success: bool | None = None
    total: int | None = None
    next_token: str | None = None


class Holder(msgspec.Struct):
    """The account of a key, and its credit."""

    id: int
    credit: float | None = None


_PAGE = msgspec.json.Decoder(ChargePage, strict=False)


def page(raw: bytes) -> ChargePage:
    """Return one page of the bill.

    Raises:
        Malformed: the body is no such page.
    """
    try:
        decoded = _PAGE.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise market_errors.Malformed(f"The bill is not what vast documents: {text.clean(str(error))}") from None
    refusals.check_success(decoded.success, "the bill")
    return decoded


def charge(line: _Line, since: datetime) -> Charge | None:
    """Return the charge of an instance's line, or None for another line. A line that began earlier counts from `since`.

    Raises:
        Malformed: the amount or the time is absurd.
    """
    named = _INSTANCE.fullmatch(line.source or "")
    if named is None:
        return None
    if not 0 < line.start < _LATEST_SECONDS:
        raise market_errors.Malformed("A line of vast's bill has no valid time; the bill is refused.")
    begin = max(datetime.fromtimestamp(line.start, UTC), since.astimezone(UTC))
    # The line's own amount is rounded to a tenth of a cent; its items are not.
    amounts = [item.amount for item in line.items or ()] or [line.amount]
    total = money.total(_dollars(amount) for amount in amounts)
    return Charge(named[1], total, begin.replace(hour=0, minute=0, second=0, microsecond=0))


def holder(raw: bytes) -> tuple[str, Usd | None]:
    """Return the account's id and its credit; the credit is None if it is missing or absurd.

    Raises:
        Malformed: the record has no account id.
    """
    decoded = tolerant_rows.row(tolerant_rows.document(raw, "The account"), Holder, "The account")
    has_credit = decoded.credit is not None and -_MOST <= decoded.credit <= _MOST
    return str(decoded.id), _dollars(decoded.credit or 0.0) if has_credit else None


def _dollars(amount: float) -> Usd:
    if not -_MOST <= amount <= _MOST:
        raise market_errors.Malformed("A line of vast's bill has an absurd amount; the bill is refused.")
    return money.usd(amount)
