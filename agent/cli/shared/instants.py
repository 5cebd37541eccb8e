"""Reads times and durations on the command line. `agent/config/time_words.py` has their syntax."""

from datetime import date, datetime, timedelta

from agent.cli.shared import exits


def instant(option: str, text: str | None) -> datetime | None:
    """Return an instant in UTC, or end with the syntax. A day means its midnight; None stays None."""
    if text is None:
        return None
    from agent.clock import SystemClock
    from agent.config import time_words

    at = time_words.instant(text, SystemClock().now())
    if at is None:
        exits.stop(exits.BAD_INPUT, [time_words.refusal(option, text)])
    return at


def span(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the instants of --since and --until, or end if one is wrong or they are exchanged."""
    both = instant("--since", since), instant("--until", until)
    refuse_exchanged(*both)
    return both


def refuse_exchanged(since: date | None, until: date | None) -> None:
    """End if the later one of two days, or of two instants, comes first."""
    if since is not None and until is not None and until < since:
        sentence = f"--until: {until} is before --since, {since}; exchange them, or leave one out"
        exits.stop(exits.BAD_INPUT, [sentence])


def told(text: str | None) -> datetime | None:
    """Return the instant of an ISO text; None stays None."""
    return None if text is None else datetime.fromisoformat(text)


def shown(text: str) -> str:
    """Return an instant for a table, with its year if that is not this year."""
    from agent.clock import SystemClock

    at = datetime.fromisoformat(text)
    return f"{at:%m-%d %H:%M:%S}" if at.year == SystemClock().now().year else f"{at:%Y-%m-%d %H:%M:%S}"


def day(option: str, text: str | None) -> date | None:
    """Return the UTC day of an instant, or end with the syntax."""
    at = instant(option, text)
    return None if at is None else at.date()


def ahead(option: str, text: str) -> timedelta:
    """Return a duration, or the time until a future instant, or end with the syntax."""
    from agent.config import time_words

    span = time_words.duration(text)
    until = time_words.absolute(text) if span is None else None
    if until is not None:
        from agent.clock import SystemClock

        span = until - SystemClock().now()
    if span is None or not timedelta(0) < span <= time_words.LONGEST:
        sentence = f"{option}: {text!r} is not a duration or a time to come; write for example 90m, 2h or 2030-01-31"
        exits.stop(exits.BAD_INPUT, [sentence])
    return span
