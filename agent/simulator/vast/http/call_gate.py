"""Limits of callers: keys, the pace per endpoint, the rows per day.

The thresholds are published: seconds between two calls of one caller (the unit is inferred), and ten searches a minute
per address. By default only the daily quota of rows is enforced.
"""

import collections
import dataclasses
import hashlib
from collections.abc import Mapping

from agent.simulator import simulator_record
from agent.simulator.api_calls import Reply
from agent.simulator.vast import calls
from agent.simulator.vast.calls import Call

DEFAULT_KEY = simulator_record.DEFAULT_KEY
SEARCH_ROWS_PER_DAY = 20_000
SEARCHES_PER_MINUTE = 10
DAY = 86_400.0
SEARCH_ROUTES = frozenset({"/bundles", "/search/asks"})
# Routes that need no key. Search answers without a key, but not to a wrong one.
OPEN_ROUTES = frozenset({*SEARCH_ROUTES, "/gpu_names/unique"})
_ROUTES_OF_404 = frozenset({*SEARCH_ROUTES, "/charges", "/invoices"})
_ROUTES_OF_A_BOX = frozenset({"/instances/{id}", "/instances/reboot/{id}", "/instances/recycle/{id}"})


@dataclasses.dataclass(frozen=True, slots=True)
class Threshold:
    """The least seconds between two calls, and how long a caller waits after breaking them."""

    seconds: float
    penalty: float | None = None


PUBLISHED: Mapping[tuple[str, str], Threshold] = {
    ("PUT", "/asks/{id}"): Threshold(4.5, penalty=12.0),
    ("PUT", "/instances/bid_price/{id}"): Threshold(5.5),
    ("PUT", "/instances/{id}"): Threshold(1.0),
    ("DELETE", "/instances/{id}"): Threshold(3.0),
    ("GET", "/instances/{id}"): Threshold(2.0),
    ("GET", "/instances"): Threshold(1.0),
    ("PUT", "/instances/reboot/{id}"): Threshold(1.0),
    ("PUT", "/instances/recycle/{id}"): Threshold(1.0),
    ("PUT", "/instances/command/{id}"): Threshold(1.5),
    ("GET", "/charges"): Threshold(1.0),
    ("GET", "/invoices"): Threshold(3.0),
    ("GET", "/instances/balance/{id}"): Threshold(3.0),
}


class Gate:
    """Let a call through, or answer it."""

    def __init__(
        self,
        key: str = DEFAULT_KEY,
        *,
        thresholds: Mapping[tuple[str, str], Threshold] | None = None,
        searches_per_minute: int | None = None,
        search_rows_per_day: int | None = SEARCH_ROWS_PER_DAY,
    ) -> None:
        """Know one key. Without thresholds no caller has to wait."""
        self.key = key
        self._thresholds = thresholds or {}
        self._searches_per_minute = searches_per_minute
        self._rows_per_day = search_rows_per_day
        self._free_at: dict[tuple[str, str, str], float] = {}
        self._punished: set[tuple[str, str, str]] = set()
        self._searches: dict[str, collections.deque[float]] = {}
        self._rows: dict[tuple[str, int], int] = {}
        self.search_rows = 0

    def instance_key(self, contract_id: int) -> str:
        """Return the key with which the container of a contract may start, stop or destroy itself."""
        return hashlib.sha256(f"{self.key}/{contract_id}".encode()).hexdigest()

    def challenge(self, call: Call) -> Reply | None:
        """Answer a caller whose key is missing or unknown."""
        if call.key == self.key:
            return None
        if call.key is None:
            if call.route in OPEN_ROUTES:
                return None
            return calls.refuse(403, "auth_error", "This action requires login.")
        if call.route in _ROUTES_OF_A_BOX and call.key == self.instance_key(call.id):
            return None
        status = 404 if call.route in _ROUTES_OF_404 else 401
        return calls.refuse(status, "auth_error", "Invalid user key")

    def pace(self, call: Call) -> Reply | None:
        """Answer a call that comes too soon."""
        if call.route in SEARCH_ROUTES:
            return self._pace_search(call)
        threshold = self._thresholds.get((call.method, call.route))
        if threshold is None:
            return None
        caller = (call.key or call.peer, call.method, call.route)
        if call.now < self._free_at.get(caller, call.now):
            if threshold.penalty is not None and caller not in self._punished:
                # Once per offence: a penalty that each further call renewed would never end for a steady caller.
                self._free_at[caller] = call.now + threshold.penalty
                self._punished.add(caller)
            return too_frequent(threshold.seconds)
        self._punished.discard(caller)
        self._free_at[caller] = call.now + threshold.seconds
        return None

    def _pace_search(self, call: Call) -> Reply | None:
        quota = self._rows_per_day
        if quota is not None and self._rows.get((call.key or call.peer, int(call.now // DAY)), 0) >= quota:
            return quota_exceeded(call.now)
        if self._searches_per_minute is None:
            return None
        recent = self._searches.setdefault(call.peer, collections.deque())
        while recent and recent[0] <= call.now - 60.0:
            recent.popleft()
        if len(recent) >= self._searches_per_minute:
            return too_frequent(60.0 / self._searches_per_minute)
        recent.append(call.now)
        return None

    def count_rows(self, call: Call, rows: int) -> None:
        """Count the rows of a search against its caller's day."""
        self.search_rows += rows
        day = (call.key or call.peer, int(call.now // DAY))
        self._rows[day] = self._rows.get(day, 0) + rows


def published(key: str = DEFAULT_KEY) -> Gate:
    """Return a gate that enforces every published threshold."""
    return Gate(key, thresholds=PUBLISHED, searches_per_minute=SEARCHES_PER_MINUTE)


def too_frequent(seconds: float) -> Reply:
    """Answer that calls of this endpoint come too fast."""
    return Reply(b'{"detail":"API requests too frequent endpoint threshold=%.1f"}' % seconds, 429)


def quota_exceeded(now: float) -> Reply:
    """Answer that the day's rows are used up."""
    reset = int(now // DAY + 1) * int(DAY)
    reply = calls.refuse(429, "search_quota_exceeded", "You have used up the search results of this day.")
    reply.headers = {"Retry-After": str(max(1, int(reset - now))), "X-RateLimit-Reset": str(reset)}
    return reply
