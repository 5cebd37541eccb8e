"""A host: the physical machine behind offers, as our own record knows it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HostRecord:
    """What we have seen of a host. `running_seconds` is the exposure in which `interruptions` were counted."""

    market: str
    host_id: str
    owner_id: str = ""
    running_seconds: float = 0.0
    interruptions: int = 0
    starts_ok: int = 0
    starts_failed: int = 0
    updated_at: datetime | None = None
