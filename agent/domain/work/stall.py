"""Stalled work: after how long without progress it counts as stalled, what is done then, and what was seen of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class OnStall(StrEnum):
    """What is done about stalled work."""

    WARN = "warn"
    """An alert."""
    RESTART = "restart"
    """Its lease is stopped and started in place."""
    MOVE = "move"
    """Its lease is released, and its slot rents another host."""
    HOLD = "hold"
    """The slot is held for a person, with its lease paused."""


@dataclass(frozen=True, slots=True)
class StallRule:
    """Work is stalled after `after` without progress; never if that is zero.

    Each of the measures in `then` follows after another `after` without progress.
    """

    after: timedelta = timedelta()
    then: tuple[OnStall, ...] = tuple(OnStall)

    @property
    def is_asked(self) -> bool:
        """Whether the work is watched for progress."""
        return self.after > timedelta()


@dataclass(frozen=True, slots=True)
class ProgressSeen:
    """The readings of a work's own signs of progress, such as its log.

    Nothing is known from before `begun_at`, the first reading. `read_at` is the last one in which every sign could be
    read, and `news_at` the last one that found something new.
    """

    begun_at: datetime
    read_at: datetime
    news_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Quiet:
    """How long the work of a lease has shown no progress since `since`, without the time in which nothing was read."""

    since: datetime
    read_at: datetime
    news_at: datetime | None = None
    lasted: timedelta = timedelta()
