"""Point 4: what a price that moves at an auction may be counted too high or too low by (ARCHITECTURE.md).

The price paid is read every two minutes, and with each look the time since the last one is counted at one price. So a
move is counted late, or early, by the time between two readings; in a stretch that nobody saw, by all of it.
"""

from agent.simulator.mithril.model import Bid
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.sight import Sight
from tests.disasters.truth import Box, Truth

READ_SECONDS = 120.0
"""Between two readings of the price that a machine pays."""


class MovedPrices:
    """Knows the prices that each machine has paid lately, and grows with each move of them."""

    def __init__(self, truth: Truth, poll: float) -> None:
        self._truth = truth
        self._late = READ_SECONDS + 2 * poll
        self._prices: dict[str, list[tuple[float, float]]] = {}
        """When each machine's price became which."""
        self._moved: set[str] = set()
        self._running: set[str] = set()
        self._begun: dict[str, float] = {}
        """The limit of what began to run since the last true listing: no look has shown its price."""
        self._seen = truth.now

    def turn(self, box: Box, at: float, rate: float) -> None:
        """See what a machine pays from now on; nothing, where it is stopped."""
        told = self._prices.setdefault(box.instance_id, [])
        if rate <= 0:
            self._running.discard(box.instance_id)
            return
        if box.instance_id not in self._running:
            self._begun[box.instance_id] = float(box.thing.limit_cents) / 100  # type: ignore[union-attr]
        elif told and told[-1][1] != rate:
            self._moved.add(box.instance_id)
        self._running.add(box.instance_id)
        told.append((at, rate))

    def grow(self, sight: Sight) -> tuple[float, float]:
        """Return by how many dollars the bounds below and above have grown, as of this true listing of the market."""
        is_unread = any(each.market == MARKET and each.place in {"paid", "search"} for each in sight.struck)
        mine = [
            box for box in self._truth.live if isinstance(box.thing, Bid) and box.label is not None and box.thing.rate
        ]
        self._moved |= {box.instance_id for box in mine if is_unread}
        if not sight.saw_truly(MARKET) or (is_unread and not self._moved and not self._begun):
            return 0.0, 0.0
        since, self._seen = self._seen - self._late, sight.now
        moved, self._moved = self._moved, set()
        begun, self._begun = self._begun, {}
        hours = (sight.now - since) / 3600
        below = sum(self._range(key, since) for key in moved) * hours
        return below, below + sum(begun.values()) * hours

    def _range(self, key: str, since: float) -> float:
        """Return the highest price less the lowest that a machine has paid since then, the one before included."""
        told = self._prices[key]
        before = [rate for at, rate in told if at <= since][-1:]
        rates = [*before, *(rate for at, rate in told if at > since)]
        # What else its pool told counts where the machine's own price is not read.
        return max(rates) - min(rates) if rates else 0.0
