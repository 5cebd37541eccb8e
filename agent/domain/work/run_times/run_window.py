"""The times in which a workload may run, as the operator wrote them, and where the present instant is in them.

No code here knows a calendar: the edge computes each `WindowNow` and hands it in.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Outside(StrEnum):
    """What happens to leases when the window of their workload closes."""

    PAUSE = "pause"
    """They are paused, keep their disks, and start again in the next window."""
    RELEASE = "release"
    """They are released. The next window rents anew."""


@dataclass(frozen=True, slots=True)
class WindowRule:
    """Windows that begin at each time of a crontab expression, by the wall clock of a zone, and last so long."""

    cron: str
    lasts: timedelta
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class WindowNow:
    """Where an instant is in the windows of a workload; times in UTC, and as the zone's wall clock shows them."""

    is_open: bool
    until: datetime | None
    """When the window closes or, outside, when the next one opens; None if none is in sight."""
    spoken: str = ""
    """That instant as an operator reads it: Mon 20:00 Europe/Berlin."""
    since: datetime | None = None
    """When the open window began; None outside, or for a window without a known beginning."""
