"""The daemon's sign of life in the bucket of a guarded slot. Its guard stops the instance when the sign is too old."""

from dataclasses import dataclass
from datetime import datetime, timedelta

VERSION = 1
NAME = "alive.json"
EVERY = timedelta(minutes=10)
"""How often a sign is written; the shortest switch is six times as long."""
SPARE = timedelta(minutes=30)
"""Tolerance between the last sign and the last metering. A running daemon writes a sign every ten minutes, meters every
five, and gives an alert if it cannot write a sign."""
SHORTEST = timedelta(hours=1)
LONGEST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Absence:
    """A person's notice that the daemon will be away: no switch fires before `until`. None: it is not away."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class ShortStarts:
    """The last starts of the daemon in a row that ended before a second pass, with the present one until then."""

    count: int = 0
    is_alerted: bool = False
    """Whether an alert reported them."""


@dataclass(frozen=True, slots=True)
class KeptSign:
    """The ledger's record of the signs in one folder of a bucket, from which a restarted daemon continues."""

    endpoint: str
    bucket: str
    prefix: str
    folder: str
    """The folder of the run, within the prefix."""
    due_at: datetime
    """When the first sign was due."""
    written_at: datetime | None = None
    """When the last confirmed sign was written; None: the bucket never confirmed one."""
    absent_until: datetime | None = None
    """The end of the absence in the last sign."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The place of the sign."""
        return self.endpoint, self.bucket, self.prefix, self.folder


def content(now: datetime, absent_until: datetime | None) -> dict[str, int]:
    """Return the content of a sign: a number that rises, and the seconds for which the daemon will be away."""
    absent = 0 if absent_until is None else max(0, round((absent_until - now).total_seconds()))
    return {"version": VERSION, "written": int(now.timestamp()), "absent_seconds": absent}


def fires_at(written_at: datetime, after: timedelta, absent_until: datetime | None) -> datetime:
    """Return the earliest time at which a switch fires without another sign.

    Outages of the bucket do not count for guards.
    """
    return max(written_at + after, absent_until or written_at)


def spoken(fires_at: datetime | None) -> str:
    """Return in words when a switch fires; None means at any time."""
    return "at any time" if fires_at is None else f"at {fires_at:%Y-%m-%d %H:%M} UTC or soon after"
