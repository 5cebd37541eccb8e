"""Point 4: how long rule 21 doubts a listed rate, as spend-bounds.md says it; the judge's own reading of it.

What another daemon bids, or a person accepts at the market, counts once it is believed, from the first on.
"""

from collections.abc import Set as AbstractSet
from typing import Any

from agent.simulator.dstack.model import Run
from tests.disasters.sight import Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Box, Truth, run_price

SECONDS = 900.0
LISTINGS = 3
"""How long, and in how many listings, a fall, or a rise of more than `STEEP` times, is doubted."""
PLAUSIBLE = 1.5
"""A rate of up to so many times the agreed one counts at once; a higher one after those listings."""
STEEP = 3.0
"""A rise of up to so many times the agreed price is doubted for those listings alone."""


def agreed(box: Box) -> float:
    """Return the hourly price of a contract's GPUs, as agreed when it was rented or last bid for."""
    thing: Any = box.thing
    if isinstance(thing, Run):
        return run_price(thing)
    return float(thing.locked_ask if thing.bid is None else thing.bid)


def shares(strike: Strike) -> tuple[float, float]:
    """Return by which shares of its rate a lie may lower and raise what is counted at once.

    A price of up to `PLAUSIBLE` times the agreed one counts at once; what is higher, `FalseRises` knows.
    """
    if strike.fault == "price":
        return float(strike.amount < 1), strike.amount - 1 if 1 < strike.amount <= PLAUSIBLE else 0.0
    return (1.0, 1.0) if strike.fault in {"state", "stale"} else (0.0, 0.0)


class Raises:
    """Knows for each instance which price above the agreed one may still be doubted."""

    def __init__(self, truth: Truth, poll: float) -> None:
        self._truth = truth
        self._doubted = SECONDS + LISTINGS * poll
        """How long a steep rise is doubted."""
        self._raised: dict[tuple[str, str], tuple[float, float]] = {}
        """When another daemon last set the bid of an instance, or a person accepted a rise, and the price before."""
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}
        """When a listing first showed that, and how many did."""
        self._false: set[str] = set()
        """The markets that told false prices since the last sight, also to a process that died of something else."""

    @property
    def raised(self) -> AbstractSet[tuple[str, str]]:
        """The instances whose price ever rose so."""
        return self._raised.keys()

    def hear(self, key: tuple[str, str], before: float) -> None:
        """See that a price rises, before the market acts on it."""
        # One that follows on another before that is believed is owed with it, from the first on.
        now = self._truth.now
        first, listings = self._seen.pop(key, (now, 0))
        is_over = listings > LISTINGS and now - first > self._doubted
        self._raised[key] = (now, before) if is_over else self._raised.get(key, (now, before))

    def hear_false(self, market: str) -> None:
        """See that a market tells a false price."""
        self._false.add(market)

    def fall(self, key: tuple[str, str], at: float, before: float, rate: float) -> float:
        """See that a price falls from `before`, and return the dollars of a rise that count no more.

        A rise that falls before it is believed is doubted anew, and what is believed then counts from the first on.
        """
        if key not in self._raised or not 0 < rate < before or self._is_believed(key, at):
            return 0.0
        self._seen.pop(key, None)
        return (before - rate) * max(at - self._raised[key][0], 0.0) / 3600

    def see(self, sight: Sight) -> None:
        """See what listings show."""
        for key in self._raised:
            if key[0] in self._false and not self._is_believed(key, sight.now):
                # Another price between two looks begins the doubt anew, as that of a fall.
                self._seen.pop(key, None)
            elif self._truth.boxes[key].is_live and sight.saw_truly(key[0]):
                first, listings = self._seen.get(key, (sight.now, 0))
                self._seen[key] = first, listings + 1
        self._false.clear()

    def unbelieved(self, sight: Sight) -> float:
        """Return what others' bids and rises add to agreed prices, while the ledger still doubts so high a rate.

        Where the instance ends meanwhile, what no listing showed and what rose to more than `STEEP` times its price
        is never counted; the rest is owed at its end.
        """
        missing = 0.0
        for key, (at, bid) in self._raised.items():
            box = self._truth.boxes[key]
            rate, until = agreed(box), box.thing.ended or sight.now
            # A rise of up to `STEEP` that a listing showed is owed at the end.
            is_counted = not box.is_live and not self._is_steep(key) and key in self._seen
            if rate > bid * PLAUSIBLE and not self._is_believed(key, until) and not is_counted:
                # A rise may be accepted at the market when the instance is no more.
                missing += (rate - bid) * max(until - at, 0.0) / 3600
        return missing

    def _is_believed(self, key: tuple[str, str], until: float) -> bool:
        """Return whether listings have shown a rise for long enough: a daemon that is down has none."""
        first, listings = self._seen.get(key, (until, 0))
        is_over = until - first > self._doubted
        return listings > LISTINGS and (is_over or not self._is_steep(key))

    def _is_steep(self, key: tuple[str, str]) -> bool:
        return agreed(self._truth.boxes[key]) > self._raised[key][1] * STEEP
