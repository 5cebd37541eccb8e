"""The timeline: due events, done in order, and only when somebody moves time."""

import heapq
from collections.abc import Callable


class Timeline:
    """The time and a heap of events; events of the same instant happen in the order in which they were put."""

    def __init__(self, start: float) -> None:
        """Start at `start`, epoch seconds."""
        self.now = start
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.on_move: Callable[[], None] | None = None

    def put(self, at: float, act: Callable[[], None]) -> None:
        """Schedule an event; one in the past happens at the next move."""
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
        if self.on_move is not None:
            self.on_move()
