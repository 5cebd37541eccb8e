"""A live dial over the days of a record: what it saw on earlier days of its group, and nothing else.

Every rule begins each day with nothing held, as in the published simulator. A dial is a figure of a service that lives
on, so ours carries its record from day to day. Looks and record are those of the daemon
(`agent/decide/service/warm_record.py`), and so is the worth that follows (`availability_dial.py`).
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from agent.decide.service import availability_dial, warm_record
from agent.decide.service.availability_dial import Law
from agent.domain.warm_time import WarmTime
from agent.lab.availability.availability_ticks import Seen
from agent.lab.availability.span import Setting, Span

_BEGIN = datetime(2000, 1, 1, tzinfo=UTC)
"""The instant at which a record begins."""


@dataclass(slots=True)
class LiveDial:
    """The dial of a service of a group of pools, on one day. `time` is the record of the days before."""

    span: Span
    slots: int
    target: float
    law: Law
    time: WarmTime

    @property
    def worth(self) -> float:
        """The worth of an hour with too few now, in hours of all slots on demand."""
        return availability_dial.of(self.target, self.time, self.law).worth

    def look(self, seen: Seen) -> None:
        """See how the last step ended. The steps in which nothing can be warm yet do not count."""
        now = _BEGIN + timedelta(hours=self.span.begins_hours + seen.step * self.span.step_hours)
        if seen.step <= self.span.cold_steps:
            self.time = msgspec.structs.replace(self.time, seen_at=now)
            return
        is_short = sum(seen.warm) + seen.on_demand_warm < self.slots
        self.time = warm_record.followed(self.time, now, timedelta(seconds=self.span.step_seconds), is_short=is_short)


def begun(span: Span, setting: Setting, target: float, law: Law, before: WarmTime | None) -> LiveDial:
    """Return the dial of a day, after the record of the days before it; None on the first."""
    time = before if before is not None else WarmTime(span.group, _BEGIN)
    return LiveDial(span, setting.slots, target, law, time)
