"""Point 4: what a fall adds that is doubted until it is believed (rule 21).

Less than agreed is charged: the ask under a bid, or what a deposit leaves. Each new rate is doubted from the first
listing that shows it.
"""

import dataclasses
import math
from typing import Any

from tests.disasters.points import price_doubt
from tests.disasters.sight import Sight
from tests.disasters.truth import Box, Truth


def agreed(box: Box) -> float:
    """Return the hourly price of a contract's GPUs, as agreed when it was rented or last bid for."""
    thing: Any = box.thing
    return float(thing.locked_ask if thing.bid is None else thing.bid)


@dataclasses.dataclass(slots=True)
class Fall:
    """A rate below the agreed one, and the one that counts until it is believed."""

    agreed: float
    counted: float
    rate: float = 0.0
    since: float = math.inf
    """When a listing first showed it."""
    listings: int = 0
    """How many did after all patience."""

    def see(self, rate: float, now: float, *, is_listed: bool) -> None:
        """See the rate that is charged, and whether the listing shows it."""
        if rate != self.rate:
            self.rate, self.since, self.listings = rate, math.inf, 0
        if not is_listed:
            return
        self.since = min(self.since, now)
        self.listings += now - self.since >= price_doubt.SECONDS
        if self.listings > price_doubt.LISTINGS:
            self.counted = rate

    def restart(self) -> None:
        """See that a listing showed another rate."""
        self.since, self.listings = math.inf, 0


class Falls:
    """Knows for each contract of Vast which rate below the agreed one is still doubted."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._falls: dict[str, Fall] = {}

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars by which the bound of what is counted too high has grown."""
        is_listed = sight.saw_truly("vast")
        is_priced_falsely = any(each.market == "vast" and each.fault == "price" for each in sight.struck)
        grown = 0.0
        for box in self._truth.live:
            rate = self._truth.gpu_rate(box)
            if box.market != "vast" or box.label is None or not 0 < rate < agreed(box):
                continue
            fall = self._falls.get(box.instance_id)
            if fall is None or fall.agreed != agreed(box):
                fall = self._falls[box.instance_id] = Fall(agreed(box), agreed(box))
            # Believing it changes nothing of the time before.
            grown += max(fall.counted - rate, 0.0) * passed / 3600
            fall.see(rate, sight.now, is_listed=is_listed)
            if is_priced_falsely:
                fall.restart()
        return grown
