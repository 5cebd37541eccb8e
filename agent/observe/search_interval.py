"""When the offers of one market are searched again for a workload: at once for a new choice, then ever more rarely.

Invariants:
1. Only a new choice, or the end of a bar on rents, starts a search early. The beginning of a bar does not.
2. Bars that end again and again start at most one early search in `EARLY_EVERY`, and do not end the back-off.
3. A search that failed is sent again in a minute: it says nothing of the offers, so the back-off does not grow by it.
"""

from collections.abc import Collection
from dataclasses import dataclass

ASK_AGAIN = (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 600.0)
"""Seconds between searches for the same unmet need: search rows are rationed by the day."""
TRIES_AT_FAILURE = ASK_AGAIN.index(60.0) + 1
"""The place in the back-off of a search that failed."""
EARLY_EVERY = 60.0
"""Seconds between searches because a bar ended: a market's clock may be just off in every other answer."""


@dataclass(slots=True)
class _Asked:
    """The last search and the last early search for a choice, and the bars on rents since the last search."""

    key: tuple[str, ...]
    at: float
    tries: int
    early_at: float
    barred: frozenset[str]


class SearchInterval:
    """The searches for each workload at one market."""

    def __init__(self) -> None:
        """Start without searches."""
        self._asked: dict[str, _Asked] = {}

    def last(self, workload: str) -> float:
        """Return when the last search for a workload was; -inf if none is known."""
        asked = self._asked.get(workload)
        return float("-inf") if asked is None else asked.at

    def is_due(self, workload: str, key: tuple[str, ...], bars: Collection[str], now: float) -> bool:
        """Return whether to search now; `bars` are the reasons that forbid rents at the market."""
        asked = self._asked.get(workload)
        if asked is None or asked.key != key:
            return True
        asked.barred |= frozenset(bars)
        return _is_early(asked, bars, now) or now - asked.at >= ASK_AGAIN[min(asked.tries, len(ASK_AGAIN)) - 1]

    def count(self, workload: str, key: tuple[str, ...], bars: Collection[str], now: float) -> None:
        """Count a search that is due and is sent now."""
        asked = self._asked.get(workload)
        if asked is None or asked.key != key:
            self._asked[workload] = _Asked(key, now, 1, float("-inf"), frozenset(bars))
            return
        is_early = _is_early(asked, bars, now)
        is_rare = now - asked.early_at >= ASK_AGAIN[-1]
        asked.tries = 1 if is_early and is_rare else asked.tries + 1
        asked.early_at = now if is_early else asked.early_at
        asked.at, asked.barred = now, frozenset(bars)

    def fail(self, workload: str) -> None:
        """Take the search that was just counted as one without an answer."""
        self._asked[workload].tries = TRIES_AT_FAILURE

    def keep(self, workloads: Collection[str]) -> None:
        """Forget every other workload: its next need is a new one."""
        self._asked = {name: asked for name, asked in self._asked.items() if name in workloads}


def _is_early(asked: _Asked, bars: Collection[str], now: float) -> bool:
    return bool(asked.barred - frozenset(bars)) and now - max(asked.at, asked.early_at) >= EARLY_EVERY
