"""Point 4: the excess of a false rise, if listings and a look by id show it alike until it is believed (rule 21).

spend-bounds.md bounds a rise that is believed, for each lease: the difference times the GPU time since the last look at
the old price. True or not, it is believed by the same answers, and lasts until its fall is believed as any fall.
"""

import dataclasses
from collections.abc import Iterator

from tests.disasters.orders import Order
from tests.disasters.points import price_doubt
from tests.disasters.sight import Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Box, Truth


@dataclasses.dataclass(slots=True)
class Lie:
    """The lowest factor by which consecutive listings show the price of one instance too high."""

    factor: float
    since: float
    counted: float
    """The dollars of GPU time that the instance was charged, up to which the bound has grown."""
    listings: int = 0
    is_by_look: bool = False
    """Whether a look told it first, because the listings lack the instance: a look counts as a listing then."""
    is_believed: bool = False
    contradicted: float = 0.0
    """Seconds of true listings since it was believed."""

    def hear(self, factor: float) -> None:
        """See it in one more listing; of several prices the lowest is believed, and owed from the last true look on."""
        if not self.is_believed:
            self.factor = min(self.factor, factor)
            self.listings += 1

    def confirm(self, factor: float, now: float) -> None:
        """See a false price in a look by id: it begins the doubt of a fall anew."""
        self.contradicted = 0.0
        is_over = self.factor <= price_doubt.STEEP or now - self.since >= price_doubt.SECONDS
        is_listed_enough = self.listings >= price_doubt.LISTINGS and is_over
        self.is_believed |= factor >= self.factor and is_listed_enough


class FalseRises:
    """Knows for each instance which lie about its price may have been believed, and its excess."""

    def __init__(self, truth: Truth, poll: float) -> None:
        self._truth = truth
        self._doubted = price_doubt.SECONDS + price_doubt.LISTINGS * poll
        self._lies: dict[tuple[str, str], Lie] = {}

    def hear(self, strike: Strike, order: Order | None, looked: float) -> None:
        """Note that a market lists false prices; `looked` is the time of its last true listing."""
        if order is None or strike.fault != "price" or strike.amount <= price_doubt.PLAUSIBLE:
            return
        key = (order.market, order.target)
        if order.place == "listing":
            for each, box in self._listed(strike.market):
                self._lie(each, box, strike.amount, looked).hear(strike.amount)
        elif order.place == "look" and key in self._truth.boxes:
            is_new = key not in self._lies
            lie = self._lie(key, self._truth.boxes[key], strike.amount, looked)
            lie.is_by_look |= is_new
            if lie.is_by_look:
                lie.hear(strike.amount)
            lie.confirm(strike.amount, self._truth.now)

    def _lie(self, key: tuple[str, str], box: Box, factor: float, looked: float) -> Lie:
        if key not in self._lies:
            self._truth.settle()
            self._lies[key] = Lie(factor, self._truth.now, self._charged(box, looked))
        return self._lies[key]

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars by which the bound of the excess has grown."""
        self._truth.settle()
        grown = 0.0
        for key, lie in list(self._lies.items()):
            is_true = sight.saw_truly(key[0])
            if lie.is_believed:
                charged = self._charged(self._truth.boxes[key], sight.now)
                grown += (lie.factor - 1.0) * (charged - lie.counted)
                lie.counted = charged
                lie.contradicted += passed if is_true else 0.0
            if lie.contradicted > self._doubted or (is_true and not lie.is_believed):
                del self._lies[key]
        return grown

    def _listed(self, market: str) -> Iterator[tuple[tuple[str, str], Box]]:
        """Yield our instances as a listing shows them, with its lie in every row."""
        for box in self._truth.live:
            if box.market == market and box.label is not None:
                yield (market, box.instance_id), box

    def _charged(self, box: Box, at: float) -> float:
        """Return the charge for an instance's GPUs up to a time, or less. The till must be settled."""
        hours = max(self._truth.now - at, 0.0) / 3600
        return max(float(box.thing.charged["gpu"]) - hours * self._truth.full_rate(box), 0.0)
