"""Point 4: what a rise adds that is none, where listing and look by id tell it alike until it is believed (rule 21).

ARCHITECTURE.md bounds a rise that is believed: the difference times the GPU time since the last look at the old price.
True or not, it is believed by the same two answers, and lasts until its fall is believed as any fall.
"""

import dataclasses

from tests.disasters.sight import Sight
from tests.disasters.story import Strike
from tests.disasters.truth import Truth

DOUBTED_SECONDS = 900.0
DOUBTED_LISTINGS = 3
"""How long, and in how many listings after the first, a rise or a fall of so much is doubted."""
PLAUSIBLE = 1.5
"""A rate of up to so many times the agreed one counts at once."""


@dataclasses.dataclass(slots=True)
class Lie:
    """A factor by which a market's listings tell prices too high, one after the other."""

    factor: float
    since: float
    counted: dict[tuple[str, str], float]
    """The dollars of GPU time that each instance was charged, up to which the bound has grown."""
    is_believed: bool = False
    contradicted: float = 0.0
    """Seconds of true listings since it was believed."""


class FalseRises:
    """Knows which lies about prices may have been believed, and what each adds."""

    def __init__(self, truth: Truth, poll: float) -> None:
        self._truth = truth
        self._doubted = DOUBTED_SECONDS + DOUBTED_LISTINGS * poll
        self._lies: dict[str, Lie] = {}

    def hear(self, strike: Strike, looked: float) -> None:
        """See that a market tells a price falsely; `looked` is when it last listed the truth."""
        if strike.fault != "price" or strike.amount <= PLAUSIBLE:
            return
        lie = self._lies.get(strike.market)
        if strike.place == "listing" and lie is None:
            self._lies[strike.market] = Lie(strike.amount, self._truth.now, self._charged(strike.market, looked))
        elif strike.place == "look" and lie is not None and strike.amount == lie.factor:
            lie.is_believed |= self._truth.now - lie.since >= DOUBTED_SECONDS

    def grow(self, sight: Sight, passed: float) -> float:
        """Return the dollars by which the bound of what is counted too high has grown."""
        grown = 0.0
        for market, lie in list(self._lies.items()):
            if lie.is_believed:
                charged = self._charged(market, sight.now)
                more = sum(dollars - lie.counted.get(key, 0.0) for key, dollars in charged.items())
                grown += (lie.factor - 1.0) * more
                lie.counted = charged
                lie.contradicted += passed if sight.saw_truly(market) else 0.0
            if lie.contradicted > self._doubted or (sight.saw_truly(market) and not lie.is_believed):
                del self._lies[market]
        return grown

    def _charged(self, market: str, at: float) -> dict[tuple[str, str], float]:
        """Return what the GPUs of each of our instances were charged up to a time, or less."""
        self._truth.settle()
        hours = max(self._truth.now - at, 0.0) / 3600
        ours = (box for box in self._truth.boxes.values() if box.market == market and box.label is not None)
        return {
            (market, box.instance_id): box.thing.charged["gpu"] - hours * self._truth.full_rate(box) for box in ours
        }
