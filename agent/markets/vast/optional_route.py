"""A route that the vendor documents nowhere: it may be gone one day, and a single answer does not prove that.

Invariants:
1. It is believed gone after `MISSES` answers in a row that know no such route, and is asked for again `AGAIN_SECONDS`
   later.
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
        """Whether it is not worth a question now."""
        return self._misses >= MISSES and self._clock.monotonic() - self._missed_at < AGAIN_SECONDS

    def answered(self) -> None:
        """Take an answer that the route gave."""
        self._misses = 0

    def missed(self) -> None:
        """Take an answer that knows no such route."""
        self._misses += 1
        self._missed_at = self._clock.monotonic()
