"""The daemon's sign of life in the bucket of a guarded slot: its guard stops the instance once it is too old."""

from dataclasses import dataclass
from datetime import datetime, timedelta

VERSION = 1
NAME = "alive.json"
EVERY = timedelta(minutes=10)
"""The shortest switch is six times as long."""
SHORTEST = timedelta(hours=1)
LONGEST = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Absence:
    """A person's word that the daemon will be away; no switch fires before `until`. None: it is not away."""

    until: datetime | None


@dataclass(frozen=True, slots=True)
class KeptSign:
    """What the ledger has of the signs in one folder of a bucket: a daemon that starts again counts on from it."""

    endpoint: str
    bucket: str
    prefix: str
    folder: str
    """The folder of the run, within the prefix."""
    due_at: datetime
    """When the first sign was due."""
    written_at: datetime | None = None
    """When the last sign was written that the bucket confirmed; None: it never confirmed one."""
    absent_until: datetime | None = None
    """The absence that this sign told."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Where it is."""
        return self.endpoint, self.bucket, self.prefix, self.folder


def content(now: datetime, absent_until: datetime | None) -> dict[str, int]:
    """Return what is written: a number that rises, and how many more seconds the daemon said that it is away."""
    absent = 0 if absent_until is None else max(0, round((absent_until - now).total_seconds()))
    return {"version": VERSION, "written": int(now.timestamp()), "absent_seconds": absent}


def fires_at(written_at: datetime, after: timedelta, absent_until: datetime | None) -> datetime:
    """Return the soonest moment at which a switch fires if nothing more is written: guards count no outage."""
    return max(written_at + after, absent_until or written_at)


def spoken(fires_at: datetime | None) -> str:
    """Return in words when a switch fires; None is any moment."""
    return "at any time" if fires_at is None else f"at {fires_at:%Y-%m-%d %H:%M} UTC or soon after"
