"""Hints in headers and bodies of answers: when to call again, and the time of the market's own clock."""

import email.utils
import functools
from datetime import UTC, datetime, timedelta

from agent.markets import transport

_LONGEST_SECONDS = 25 * 3600.0
_EARLIEST_YEAR, _LATEST_YEAR = 2020, 2100
"""A market's clock may be wrong within these years. Outside them the header is junk, and sums with it overflow."""


def after(hint: object, now: datetime) -> datetime | None:
    """Return the instant of a hint, which is a number of seconds from now or a date; None for other text."""
    if isinstance(hint, bool) or not isinstance(hint, int | float | str):
        return None
    try:
        seconds = float(hint)
    except ValueError:
        return _date(str(hint))
    except OverflowError:
        return now + timedelta(seconds=_LONGEST_SECONDS)
    if not seconds >= 0:
        return None
    return now + timedelta(seconds=min(seconds, _LONGEST_SECONDS))


def at(hint: str | None, now: datetime) -> datetime | None:
    """Return the instant of epoch seconds, if it is near enough to wait for."""
    try:
        seconds = float(hint or "nan")
    except ValueError:
        return None
    # Some markets send a number of seconds where an instant is documented; an instant is far larger.
    if not now.timestamp() - 60 <= seconds <= now.timestamp() + _LONGEST_SECONDS:
        return None
    return datetime.fromtimestamp(seconds, UTC)


@functools.lru_cache(64)
def _date(stamp: str) -> datetime | None:
    """Return the instant of an HTTP date, read as UTC if it names no zone; None for other text.

    It is cached, because all answers of one second have the same date, and so have those of one cycle in a rehearsal.
    """
    try:
        named = email.utils.parsedate_to_datetime(stamp)
        return named.replace(tzinfo=UTC) if named.tzinfo is None else named.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def market_time(reply: transport.Reply) -> datetime | None:
    """Return the time of the market's own clock, from the answer's Date header."""
    return server_time(reply.headers.get("Date") or "")


def server_time(date: str) -> datetime | None:
    """Return the time of a Date header; None for junk."""
    at = _date(date)
    return at if at is not None and _EARLIEST_YEAR <= at.year < _LATEST_YEAR else None
