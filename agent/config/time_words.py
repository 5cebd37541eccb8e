"""The syntax of times that people write: 2h (ago), 2026-11-20 (a UTC day) or 2026-11-20T08:00Z."""

from datetime import UTC, datetime, timedelta

import pydantic

from agent.config import value_kinds
from agent.domain.record import expiry

LONGEST = expiry.LASTING
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
