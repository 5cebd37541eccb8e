"""The guard's clock: seconds since the host's boot, and waits.

`speed` is simulated seconds per real second; it is 1 on a rented host. Every duration of the guard is in simulated
seconds, but those of the network.
"""

from __future__ import annotations

import threading
import time

LEAST_SPEED, MOST_SPEED = 1.0, 1000.0


def uptime() -> float:
    """Return real seconds since the host's boot: programs run in real time."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class GuardClock:
    """The time since boot, which is the same for all processes of one host."""

    def __init__(self, speed: float = 1.0) -> None:
        """Run at a speed between 1 and 1,000."""
        self.speed = min(max(speed, LEAST_SPEED), MOST_SPEED)

    def now(self) -> float:
        """Return seconds since the host's boot."""
        return uptime() * self.speed

    def wall(self) -> float:
        """Return the host's seconds since 1970: reported to others, never compared with their clocks."""
        return time.time()

    def real(self, seconds: float) -> float:
        """Return how many real seconds a duration has."""
        return max(seconds, 0.0) / self.speed

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event for a time at most; return whether it is set."""
        return event.wait(self.real(seconds))
