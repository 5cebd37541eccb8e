"""A market that refuses our key: nothing can be ordered there, not even an end."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Refusal:
    """Every answer of a market since its last good one was that the key is unknown, or may not do this."""

    lasts: timedelta
    """Since its last good answer, or since the start of the daemon."""
    is_since_start: bool = False
    """Whether it has given this daemon no good answer since it was started."""
