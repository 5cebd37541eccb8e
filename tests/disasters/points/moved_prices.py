"""Point 4: what a price that moves at an auction may be counted too high or too low by (spend-bounds.md).

The price paid is read every two minutes, and the time since then is counted at one price. So a move is counted late, or
early, by the time between two readings. A stretch that nobody saw is counted by the periods of the bill, unless the
machine ended in it. A price that is told falsely counts between nothing and the limit, until it is read again.
"""

from agent.simulator.mithril.model import Bid, Status
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
        self._untold: dict[str, float] = {}
        """The limit of what ran while its market told prices falsely, or none."""
        self._unseen = 0.0
        self._seen = truth.now

    def turn(self, box: Box, at: float, rate: float) -> None:
        """See what a machine pays from now on; nothing, where it is stopped."""
        thing, told = box.thing, self._prices.setdefault(box.instance_id, [])
        if not isinstance(thing, Bid):
            return
        if rate <= 0:
            if box.instance_id in self._running and self._is_ordered_unseen(box):
                # Case 1 of spend-bounds.md: it won after the last look, and an order of ours ended or paused it.
                self._unseen += told[-1][1] * (at - told[-1][0]) / 3600
            self._running.discard(box.instance_id)
            return
        if box.instance_id not in self._running:
            self._begun[box.instance_id] = thing.limit_cents / 100
        elif told and told[-1][1] != rate:
            self._moved.add(box.instance_id)
        self._running.add(box.instance_id)
        told.append((at, rate))

    def _is_ordered_unseen(self, box: Box) -> bool:
        thing = box.thing
        is_ordered = isinstance(thing, Bid) and thing.status in {Status.PAUSED, Status.TERMINATED}
        return is_ordered and box.instance_id in self._begun

    def grow(self, sight: Sight) -> tuple[float, float]:
        """Return by how many dollars the bounds below and above have grown, as of this true listing of the market."""
        if any(each.market == MARKET and each.place in {"paid", "search"} for each in sight.struck):
            for thing in (box.thing for box in self._truth.live if box.label is not None):
                if isinstance(thing, Bid) and thing.rate:
                    self._untold[thing.fid] = thing.limit_cents / 100
        if not sight.saw_truly(MARKET):
            return 0.0, 0.0
        since, self._seen = self._seen - self._late, sight.now
        is_read = self._begun.keys() - self._untold.keys()
        untold, self._untold, self._begun = self._begun | self._untold, {}, {}
        moved, self._moved = self._moved - untold.keys(), set()
        hours = (sight.now - since) / 3600
        spans = {key: min(self._late / 3600, hours) for key in moved | is_read if self._is_live(key)}
        change = sum(self._range(key, since) * spans.get(key, hours) for key in moved)
        less = sum(self._most(key, since) * spans.get(key, hours) for key in untold)
        more = sum(limit * spans.get(key, hours) for key, limit in untold.items())
        unseen, self._unseen = self._unseen, 0.0
        return change + less + unseen, change + more

    def _is_live(self, key: str) -> bool:
        return self._truth.boxes[MARKET, key].is_live

    def _range(self, key: str, since: float) -> float:
        """Return the highest price less the lowest that a machine has paid since then, the one before included."""
        rates = self._rates(key, since)
        return max(rates) - min(rates) if rates else 0.0

    def _most(self, key: str, since: float) -> float:
        return max(self._rates(key, since), default=0.0)

    def _rates(self, key: str, since: float) -> list[float]:
        told = self._prices[key]
        return [*[rate for at, rate in told if at <= since][-1:], *(rate for at, rate in told if at > since)]
