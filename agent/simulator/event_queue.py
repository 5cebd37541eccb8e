"""The timeline: what is due when, done in order, and only when somebody moves time."""

import heapq
from collections.abc import Callable


class Timeline:
    """Keep the hour and a heap of things to do; things due at the same instant are done in the order they were put."""

    def __init__(self, start: float) -> None:
        """Stand at `start`, epoch seconds."""
        self.now = start
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def put(self, at: float, act: Callable[[], None]) -> None:
        """Do something at a time; what lies in the past is done at the next move."""
        self._count += 1
        heapq.heappush(self._due, (max(at, self.now), self._count, act))

    def advance_to(self, now: float) -> None:
        """Do everything due until `now`, each at its own time. Going back is ignored."""
        due = self._due
        while due and due[0][0] <= now:
            at, _, act = heapq.heappop(due)
            self.now = at
            act()
        self.now = max(self.now, now)
