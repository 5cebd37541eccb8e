"""The market's own bill and credit -> our charges and amounts."""

from datetime import UTC, datetime

import msgspec

from agent.domain import money
from agent.domain.money import Usd
from agent.markets import market_errors, text
from agent.markets.port import Charge

_MOST = 1e7
"""Dollars on one line above which the line is wrong."""


class _Record(msgspec.Struct):
    podId: str  # noqa: N815 - the vendor's spelling
    totalAmount: float  # noqa: N815 - as above
    startTime: str  # noqa: N815 - as above


class _Bill(msgspec.Struct):
    records: list[_Record]


_BILL = msgspec.json.Decoder(_Bill, strict=False)


def charges(raw: bytes) -> list[Charge]:
    """Return the bill by pod and UTC day.

    Raises:
        Malformed: the body is no bill, or a line of it is absurd.
    """
    try:
        records = _BILL.decode(raw).records
    except (msgspec.DecodeError, RecursionError) as error:
        raise market_errors.Malformed(f"The bill is not what runpod documents: {text.clean(str(error))}") from None
    return [Charge(text.clean(line.podId, 64), dollars(line.totalAmount), _day(line.startTime)) for line in records]


def dollars(amount: float) -> Usd:
    """Return an amount of the bill.

    Raises:
        Malformed: the amount is absurd.
    """
    if not -_MOST <= amount <= _MOST:
        raise market_errors.Malformed("runpod shows an absurd sum; it is refused.")
    return money.usd(amount)


def credit(amount: float | None) -> Usd | None:
    """Return the credit, or None if it is missing or absurd."""
    return dollars(amount) if amount is not None and -_MOST <= amount <= _MOST else None


def _day(stamp: str) -> datetime:
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        raise market_errors.Malformed("A line of runpod's bill has no time; the bill is refused.") from None
    return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
