"""What a proxy in front of a service last reported of the server that stands for one lease."""

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
