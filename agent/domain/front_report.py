"""What a proxy in front of a service last reported of the server that stands for one lease."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class FrontReport:
    """One lease's server. `read_at` is when the proxy was asked."""

    read_at: datetime
    is_drained: bool = False
    """Whether the proxy gives it no new connection."""
    sessions: int = 0
    """Requests that it answers or that wait for it."""
    asked_at: datetime | None = None
    """Since when its ending waits for these requests; None: no ending waits."""


def together(reports: Sequence[FrontReport]) -> FrontReport:
    """Return what several proxies in front of one lease report together; there is at least one.

    It is drained only where all of them say so, and as old as the oldest of them.
    """
    asked = [each.asked_at for each in reports if each.asked_at is not None]
    return FrontReport(
        read_at=min(each.read_at for each in reports),
        is_drained=all(each.is_drained for each in reports),
        sessions=sum(each.sessions for each in reports),
        asked_at=max(asked, default=None),
    )
