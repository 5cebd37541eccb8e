"""A job: work that runs on instances, is saved at checkpoints, and continues elsewhere from the last one.

Invariants:
1. Saved work never decreases. An instance continues from the work that was saved when it began.
2. The instant at which the work is done is exact, for any steps in which time passes.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """One stretch of running: useful from `since` on, with `base` hours of work behind it."""

    since: datetime
    base: float
    speed: float

    def done(self, at: datetime) -> float:
        return self.base + max((at - self.since) / _HOUR, 0.0) * self.speed

    def saved(self, at: datetime, interval: timedelta) -> float:
        whole = int(max((at - self.since) / interval, 0.0)) if interval else 0
        return self.base + whole * (interval / _HOUR) * self.speed if interval else self.done(at)


@dataclass(slots=True)
class Job:
    """`hours` of work, saved every `interval`. A start needs `restore` before the work continues."""

    hours: float
    interval: timedelta
    restore: timedelta
    done_at: datetime | None = None
    _saved: float = 0.0
    _running: dict[str, _Stretch] = field(default_factory=dict)

    def start(self, instance_id: str, at: datetime, speed: float) -> None:
        """Begin to run on an instance, from the work saved by then."""
        self._running[instance_id] = _Stretch(at + self.restore, self.saved(at), speed)

    def stop(self, instance_id: str, at: datetime) -> None:
        """End on an instance: unsaved work is lost."""
        self._finish(at)
        stretch = self._running.pop(instance_id, None)
        if stretch is not None:
            self._saved = max(self._saved, min(stretch.saved(at, self.interval), self.hours))

    def saved(self, at: datetime) -> float:
        """Return the hours of saved work, which no loss can take away."""
        return max([self._saved, *(each.saved(at, self.interval) for each in self._running.values())])

    def printed_hours(self, instance_id: str, at: datetime) -> float | None:
        """Return the hours that an instance would print, or None while it restores or does not run."""
        stretch = self._running.get(instance_id)
        return None if stretch is None or at < stretch.since else min(stretch.done(at), self.hours)

    def advance(self, at: datetime) -> None:
        """Let time pass until then."""
        self._finish(at)

    def _finish(self, at: datetime) -> None:
        for stretch in self._running.values():
            ends = stretch.since + timedelta(hours=(self.hours - stretch.base) / stretch.speed)
            if ends <= at and (self.done_at is None or ends < self.done_at):
                self.done_at = ends
