"""What the guard of one lease measured, as far as the daemon believes it."""

from dataclasses import dataclass
from datetime import datetime

from agent.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class GuardFigures:
    """The last figures of a lease's guard. A host may lie in each, within the bounds that our own clock sets."""

    lease_id: str
    slot: Slot
    market: str
    host_id: str
    run: int
    """The run of the slot that its guard was started for."""
    stretch: int
    """The lease's stretch of running that they are of, counted from 1."""
    told_at: datetime
    """When the daemon read what changed last."""
    progress: float | None = None
    """The number that the work writes, in its own unit."""
    manifest: str = ""
    """The last checkpoint of this stretch that is whole in the bucket; empty while there is none."""
    kept_at: datetime | None = None
    """When that checkpoint was taken, by our clock; without one, when the stretch began. None: nobody knows."""
    checkpoint_bytes: int | None = None
    took_seconds: float | None = None
    """How long the work took to make it."""
    upload_seconds: float | None = None
    restore_seconds: float | None = None
    """How long the last restore from the bucket took."""
