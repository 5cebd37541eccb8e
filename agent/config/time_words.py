"""The syntax of times that people write: 2h (ago), 2026-11-20 (a UTC day) or 2026-11-20T08:00Z."""

from datetime import UTC, datetime, timedelta

import pydantic

from agent.config import value_kinds
from agent.domain.record import expiry

LONGEST = expiry.LASTING
YEARS = range(2000, 2101)
"""Years whose instants every calendar can reckon with, weeks before and after."""
SPAN: pydantic.TypeAdapter[timedelta] = pydantic.TypeAdapter(value_kinds.Span)


def instant(text: str, now: datetime) -> datetime | None:
    """Return an instant in UTC, or None for a text that is neither an instant nor a time ago."""
    span = duration(text)
    return absolute(text) if span is None else now - span


def absolute(text: str) -> datetime | None:
    """Return the instant of an ISO date or time, or None for any other text. A time without a zone is UTC."""
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def of_key(value: object, example: str) -> datetime:
    """Return the instant in UTC of a key's value, a time of TOML or a text.

    Raises:
        PydanticCustomError: it is no time with a zone, or lies outside of `YEARS`.
    """
    if isinstance(value, str):
        value = absolute(value)
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise value_kinds.refused("bad_time", f"must be a time with its zone; write for example {example}")
    if value.year not in YEARS:
        sentence = f"must lie between {YEARS[0]} and {YEARS[-1]}; write for example {example}"
        raise value_kinds.refused("bad_time", sentence)
    return value.astimezone(UTC)


def duration(text: str) -> timedelta | None:
    """Return a duration such as 90m or 1d12h, of ten years at most, or None for any other text."""
    try:
        span = SPAN.validate_python(text)
    except pydantic.ValidationError:
        return None
    return span if timedelta(0) < span <= LONGEST else None


def refusal(option: str, text: str) -> str:
    """Return the message for a text that is no instant."""
    return f"{option}: {text!r} is not an ISO date such as 2026-11-20 or 2026-11-20T08:00Z, or a time ago as 2h"
