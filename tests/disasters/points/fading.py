"""Point 4: a missing instance that no longer exists counts until an order ends it, however late (spend-bounds.md).

Without an order it is given up by listings alone, and counts up to the first that lacked it: it adds nothing here.
"""

import dataclasses
from collections.abc import Collection

from tests.disasters.orders import Order
from tests.disasters.sight import Sight

ENDS = frozenset({"release", "pause"})


@dataclasses.dataclass(slots=True)
class Missing:
    """An instance that is no more. `until` ends the time for which the bound has grown already, at `rate` an hour."""

    until: float
    rate: float
    is_ordered: bool = False
    lacked: float = 0.0
    """Seconds of true listings after the first `until`, in one life of the process."""


class Fading:
    """Knows what may still be missing. `patience` is how long listings must lack it after that until it is given up."""

    def __init__(self, poll: float, patience: float) -> None:
        self._poll = poll
        self._patience = patience
        self._missing: dict[tuple[str, str], Missing] = {}

    def begin(self, key: tuple[str, str], until: float, rate: float) -> None:
        """See that an instance is no more."""
        self._missing[key] = Missing(until, rate)

    def hear(self, order: Order) -> None:
        """See an order of ours, whether the market gets it or not."""
        missing = self._missing.get((order.market, order.target))
        if missing is not None and order.kind in ENDS:
            missing.is_ordered = True

    def forget(self) -> None:
        """See that the process ends: the next one counts from nothing how long listings lack it."""
        for missing in self._missing.values():
            missing.lacked = 0.0

    def show(self, shown: Collection[tuple[str, str]], now: float) -> float:
        """See that a stale listing shows what is no more: it ran all the time, and does until a true one lacks it.

        Return the dollars by which that raises the bound.
        """
        grown = 0.0
        for missing in (missing for key, missing in self._missing.items() if key in shown):
            grown += missing.rate * max(now - missing.until, 0.0) / 3600
            missing.until, missing.lacked = max(missing.until, now), 0.0
        return grown

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars by which orders that came after all patience raise the bound."""
        grown = 0.0
        for key, missing in list(self._missing.items()):
            late = max(sight.now - missing.until, 0.0)
            if missing.is_ordered:
                grown += missing.rate * late / 3600
                missing.until, missing.is_ordered = max(missing.until, sight.now), False
            if late and self._is_lacked(sight, key[0]):
                missing.lacked += min(passed, self._poll)
            if missing.lacked > self._patience:
                del self._missing[key]
        return grown

    def _is_lacked(self, sight: Sight, market: str) -> bool:
        """Return whether a listing lacked it, and the ledger took what follows from that."""
        return sight.saw_truly(market) and not any(each.market == "ledger" for each in sight.struck)
