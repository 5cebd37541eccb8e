"""A route that the vendor does not document. It may be removed one day, and a single answer does not prove that.

Invariants:
1. It counts as gone after `MISSES` answers in a row that know no such route. It is tried again `AGAIN_SECONDS` later.
"""

from agent.clock import Clock

MISSES = 3
AGAIN_SECONDS = 3600.0


class OptionalRoute:
    """Whether one undocumented route still answers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._misses = 0
        self._missed_at = 0.0

    @property
    def is_gone(self) -> bool:
        """Whether it counts as gone now."""
        return self._misses >= MISSES and self._clock.monotonic() - self._missed_at < AGAIN_SECONDS

    def answered(self) -> None:
        """Count an answer of the route."""
        self._misses = 0

    def missed(self) -> None:
        """Count an answer that knows no such route."""
        self._misses += 1
        self._missed_at = self._clock.monotonic()
