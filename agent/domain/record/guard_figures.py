"""The figures that the guard of one lease measured, as far as the daemon believes them."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class GuardFigures:
    """The last figures of a lease's guard. A host may lie in each, but only within the bounds of our own clock."""

    lease_id: str
    slot: Slot
    market: str
    host_id: str
    run: int
    """The slot's run that its guard was started for."""
    stretch: int
    """The number of the lease's stretch of running that they are about, counted from 1."""
    told_at: datetime
    """When the daemon read the last change."""
    progress: float | None = None
    """The number that the work writes, in its own unit."""
    manifest: str = ""
    """The last checkpoint of this stretch that is whole in the bucket; empty while there is none."""
    kept_at: datetime | None = None
    """When that checkpoint was taken, by our clock; without one, when the stretch began. None: unknown."""
    checkpoint_bytes: int | None = None
    took_seconds: float | None = None
    """The time in which the work made that checkpoint."""
    upload_seconds: float | None = None
    restore_seconds: float | None = None
    """The time of the last restore from the bucket."""
