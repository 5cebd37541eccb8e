"""The call limits of one key: three windows, with the figures of the published document's example."""

import math

from agent.simulator.api_calls import Reply
from agent.simulator.runpod.http import calls

# name, calls, seconds
PUBLISHED: tuple[tuple[str, int, int], ...] = (("minute", 60, 60), ("hour", 3_000, 3_600), ("day", 50_000, 86_400))


class Limits:
    """Counts calls per window. Without windows no caller waits, and answers have no header about them."""

    def __init__(self, windows: tuple[tuple[str, int, int], ...] = ()) -> None:
        """Start with no calls."""
        self._windows = windows
        self._counts: dict[str, tuple[int, int]] = {}  # which window of a name, and its calls

    def pace(self, now: float) -> Reply | None:
        """Count a call, and return the refusal if it is one too many."""
        refused = None
        for name, quota, seconds in self._windows:
            number = int(now // seconds)
            window, count = self._counts.get(name, (number, 0))
            count = count + 1 if window == number else 1
            self._counts[name] = (number, count)
            if count > quota and refused is None:
                refused = self.refuse(now, math.ceil((number + 1) * seconds - now))
        return refused

    def refuse(self, now: float, seconds: float) -> Reply:
        """Answer that calls come too fast."""
        reply = calls.problem(429, "Rate limit exceeded. Please retry later.")
        reply.headers = {"Retry-After": str(max(1, math.ceil(seconds))), **self.headers(now)}
        return reply

    def headers(self, now: float) -> dict[str, str]:
        """Return the headers of an answer."""
        if not self._windows:
            return {}
        left, policy = [], []
        for name, quota, seconds in self._windows:
            count = self._counts.get(name, (0, 0))[1]
            left.append(f'"{name}";r={max(quota - count, 0)};t={math.ceil(seconds - now % seconds)}')
            policy.append(f'"{name}";q={quota};w={seconds}')
        return {"RateLimit": ", ".join(left), "RateLimit-Policy": ", ".join(policy)}


def published() -> Limits:
    """Return the three published windows."""
    return Limits(PUBLISHED)
