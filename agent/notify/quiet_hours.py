"""Quiet hours: which messages wait and until when, and the message after them. Pure: time is handed in.

Invariants:
1. A critical message and one about money never wait, nor does anything for a hook: it acts, and no person reads it.
2. When the hours end, the waiting messages of a channel are sent as one message. Nothing is left out silently.
3. Hours that never end are no quiet hours.
"""

import datetime as dt
from collections.abc import Sequence

from agent.config.notify_settings import Notify, Severity, is_of_money
from agent.config.run_times import run_calendar
from agent.notify.incidents import MOST_LINES, Message

NEVER_WAITS = "hook"


def until(message: Message, notify: Notify, now: dt.datetime) -> dt.datetime | None:
    """Return when a message may be sent, or None if it may be sent now."""
    rules = tuple(each.hours for each in notify.quiet if message.severity <= each.up_to)
    is_urgent = message.severity is Severity.CRITICAL or any(is_of_money(event.kind) for event in message.events)
    if not rules or is_urgent or message.channel == NEVER_WAITS:
        return None
    hours = run_calendar.now(rules, now)
    return hours.until if hours.is_open else None


def combined(messages: Sequence[Message]) -> Message:
    """Return one message in place of those of one channel that waited: the most severe first, then the oldest.

    Of too many lines the least severe are left out.
    """
    if len(messages) == 1:
        return messages[0]
    first, last = messages[0], messages[-1]
    by_severity = sorted(messages, key=lambda message: -message.severity)
    lines = [line for message in by_severity for line in message.text.splitlines()]
    cut = len(lines) - MOST_LINES
    events = [event for message in messages for event in message.events]
    return Message(
        key=f"{first.key}+{len(messages)}",
        channel=first.channel,
        severity=max(message.severity for message in messages),
        title=f"gpubid: {len(messages)} messages of the quiet hours",
        text="\n".join([*lines[:MOST_LINES], *([f"(and {cut} lines that are no more severe)"] if cut > 0 else [])]),
        at=last.at,
        # A restart begins to read again at the first one.
        events=(*events[:1], *events[1:][-MOST_LINES:]),
    )
