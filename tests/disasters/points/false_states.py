"""Point 4: a stopped instance that a listing falsely shows as started counts until the next true listing.

It counts from the last look on, and through a death of the process and a dark stretch, because the ledger may have it.
"""

from collections.abc import Iterator

from tests.disasters.orders import Order
from tests.disasters.sight import Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Box, Truth


class FalseStates:
    """Remembers the markets that told a false state since their last true listing."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._counted: dict[str, float] = {}
        """Until when the bound has grown."""
        self._gaps: dict[str, float] = {}
        """The highest rate at which a stopped instance of a market counted falsely, in dollars an hour."""

    def hear(self, strike: Strike, order: Order | None, looked: float) -> None:
        """See what a market told falsely; `looked` is the time of its last true listing."""
        if order is not None and strike.fault == "state":
            self._counted.setdefault(strike.market, looked)
            self._gaps[strike.market] = self._gap(strike.market)

    def grow(self, sight: Sight) -> float:
        """Return the dollars by which the bound has grown."""
        grown = 0.0
        for market, counted in list(self._counted.items()):
            self._gaps[market] = max(self._gaps[market], self._gap(market))
            grown += self._gaps[market] * (sight.now - counted) / 3600
            self._counted[market] = sight.now
            if sight.saw_truly(market):
                del self._counted[market], self._gaps[market]
        return grown

    def _gap(self, market: str) -> float:
        """Return by how much one row that is shown as started raises the rate at most."""
        rates = (self._truth.full_rate(box) - self._truth.rate(box) for box in self._stopped(market))
        return max(rates, default=0.0)

    def _stopped(self, market: str) -> Iterator[Box]:
        for box in self._truth.live:
            if box.market == market and box.label is not None and not box.thing.holds_gpu:
                yield box
