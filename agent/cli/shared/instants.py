"""The one syntax of times on the command line: 2h (ago), 2026-11-20 (a UTC day) or 2026-11-20T08:00Z."""

from datetime import UTC, date, datetime, timedelta

from agent.cli.shared import exits

LONGEST = timedelta(days=3650)


def instant(option: str, text: str | None) -> datetime | None:
    """Return an instant in UTC, or end with how to write one. A day is its midnight; None stays None."""
    if text is None:
        return None
    span = duration(text)
    if span is not None:
        from agent.clock import SystemClock

        return SystemClock().now() - span
    found = absolute(text)
    if found is None:
        sentence = f"{option}: {text!r} is not an ISO date such as 2026-11-20 or 2026-11-20T08:00Z, or a time ago as 2h"
        exits.stop(exits.BAD_INPUT, [sentence])
    return found


def day(option: str, text: str | None) -> date | None:
    """Return the UTC day of an instant, or end with how to write one."""
    found = instant(option, text)
    return None if found is None else found.date()


def absolute(text: str) -> datetime | None:
    """Return the instant of an ISO date or time, without a zone in UTC; None for any other text."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def duration(text: str) -> timedelta | None:
    """Return a duration such as 90m or 1d12h, of ten years at most; None for any other text."""
    import pydantic

    from agent.config import kinds

    try:
        span = pydantic.TypeAdapter(kinds.Span).validate_python(text)
    except pydantic.ValidationError:
        return None
    return span if timedelta(0) < span <= LONGEST else None


def ahead(option: str, text: str) -> timedelta:
    """Return how long something holds: a duration, or until a time to come; or end with how to write it."""
    span = duration(text)
    until = absolute(text) if span is None else None
    if until is not None:
        from agent.clock import SystemClock

        span = until - SystemClock().now()
    if span is None or not timedelta(0) < span <= LONGEST:
        sentence = f"{option}: {text!r} is not a duration or a time to come; write for example 90m, 2h or 2030-01-31"
        exits.stop(exits.BAD_INPUT, [sentence])
    return span
