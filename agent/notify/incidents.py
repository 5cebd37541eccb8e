"""Events -> messages: the first event of an incident at once, the others in a summary when it is over.

An incident is one kind of trouble of one slot (or of the whole program) on one channel: while its window is open,
further events of it only lengthen the summary. Pure: time is handed in, so a test needs no clock.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from agent.config.notify_settings import Notify, Severity, severity_of
from agent.domain.record.event import Event

MOST_LINES = 20
"""A summary has the last events, at most this many."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message for one channel."""

    key: str
    """A repeated message has the same key, so that receivers can drop doubles."""
    channel: str
    severity: Severity
    title: str
    text: str
    at: dt.datetime
    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class _Open:
    first: Event
    until: dt.datetime
    more: tuple[Event, ...] = ()


@dataclass(slots=True)
class Incidents:
    """The recent messages, and the events counted since."""

    notify: Notify
    _open: dict[tuple[str, str], _Open] = field(default_factory=dict)

    def use(self, notify: Notify) -> None:
        """Use other rules from now on; the incidents of a removed channel are forgotten, as are its messages."""
        self.notify = notify
        self._open = {place: each for place, each in self._open.items() if place[1] in notify.channels}

    def take(self, events: Iterable[Event], now: dt.datetime) -> list[Message]:
        """Return the messages that are due for `events`, oldest first, and for incidents that are over."""
        messages = self.due(now)
        for event in events:
            for channel in self._channels(event):
                messages += self._messages(event, channel, now)
        return messages

    def due(self, now: dt.datetime) -> list[Message]:
        """Return the summaries of incidents whose window has closed."""
        over = [(place, each) for place, each in self._open.items() if each.until <= now]
        for place, _ in over:
            del self._open[place]
        return [_summary(place[1], each) for place, each in over if each.more]

    @property
    def uncounted(self) -> list[int]:
        """The numbers of the first events that only a later summary will contain."""
        return [each.more[0].event_id or 0 for each in self._open.values() if each.more]

    def _channels(self, event: Event) -> list[str]:
        named = {name for rule in self.notify.rules if rule.fits(event.kind, event.workload) for name in rule.channels}
        return [name for name in self.notify.channels if name in named]

    def _messages(self, event: Event, channel: str, now: dt.datetime) -> list[Message]:
        if channel == "hook":
            # A hook gets every transition: it acts on each, and no person reads it.
            return [_message(event, channel)]
        place = (_incident(event), channel)
        known = self._open.get(place)
        if known is None:
            self._open[place] = _Open(event, now + self.notify.window)
            return [_message(event, channel)]
        self._open[place] = replace(known, more=(*known.more, event))
        return []


def _incident(event: Event) -> str:
    return f"{event.kind}/{event.workload}/{event.slot if event.slot is not None else ''}"


def _message(event: Event, channel: str) -> Message:
    where = f" {event.workload}/{event.slot}" if event.slot is not None else ""
    cause = f" ({event.cause.value})" if event.cause is not None else ""
    return Message(
        key=f"{channel}/{event.event_id}",
        channel=channel,
        severity=severity_of(event.kind),
        title=f"gpubid: {event.kind}{where}{cause}",
        text=line(event),
        at=event.at,
        events=(event,),
    )


def _summary(channel: str, each: _Open) -> Message:
    last = each.more[-1]
    cut = len(each.more) - MOST_LINES
    lines: Sequence[str] = [line(event) for event in each.more[-MOST_LINES:]]
    return Message(
        key=f"{channel}/{each.first.event_id}-{last.event_id}",
        channel=channel,
        severity=severity_of(last.kind),
        title=f"gpubid: {len(each.more)} more of {_incident(last).rstrip('/')}",
        text="\n".join([*([f"(and {cut} before these)"] if cut > 0 else []), *lines]),
        at=last.at,
        events=each.more[-MOST_LINES:],
    )


def line(event: Event) -> str:
    """Return an event as one line for a person."""
    parts = [f"{event.at:%Y-%m-%d %H:%M:%S} UTC", event.kind]
    if event.slot is not None:
        parts.append(f"{event.workload}/{event.slot}")
    if event.host_id:
        parts.append(f"host {event.host_id}")
    return ": ".join([" ".join(parts), *(text for text in (event.observation, event.reason) if text)])
