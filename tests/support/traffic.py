"""The most that traffic may cost between two looks, from the market's charges."""

import heapq
from collections.abc import Iterable

from agent.simulator.market_model import Charge


def most_dollars(charges: Iterable[Charge], seconds: float, slots: int) -> float:
    """Return the most dollars of traffic that `slots` instances may have had within `seconds`."""
    found = (
        charge.amount * min(1.0, seconds / max(charge.end - charge.start, 1.0))
        for charge in charges
        if charge.kind in {"download", "upload"}
    )
    return sum(heapq.nlargest(slots, found))
