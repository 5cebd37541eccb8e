"""Point 4: what an order adds that ends what its market may have given back in a dark stretch (spend-bounds.md).

Only Vast gives a GPU back by itself, and only where it took the GPU itself, not where an order of ours paused it.
"""

from pathlib import Path

from agent.simulator.market_model import Contract, StopCause
from tests.disasters.exchange import UNHEARD
from tests.disasters.orders import Order
from tests.disasters.points.fading import ENDS
from tests.disasters.readings import Readings
from tests.disasters.story import Strike
from tests.disasters.strikes import DEATH
from tests.disasters.truth import Box, Truth

DARK_SECONDS = 110.0
"""The market may have given back an instance that was not listed for longer."""
_PAUSED = "SELECT 1 FROM leases WHERE market = ? AND instance_id = ? AND paused_by_us"
_NOT_OF_THE_MARKET = frozenset({None, StopCause.USER, StopCause.UNDERBID})
"""After these the contract does not bid for its GPU."""


class GivenBack:
    """Remembers the last order that ended or paused a stopped instance in a market that was not listed."""

    def __init__(self, truth: Truth, readings: Readings) -> None:
        self._truth = truth
        self._readings = readings
        self._ordered: dict[tuple[str, str], float] = {}
        self._listed: dict[tuple[str, str], float] = {}
        """When a true listing last showed each instance: one that is gone was not listed since."""
        self._is_muddled = False
        """Whether the program may have forgotten a pause of its own, or another daemon gave one."""

    def see(self, market: str, listed: float) -> None:
        """See that a true listing of a market began at `listed`."""
        for box in self._truth.live:
            if box.market == market:
                self._listed[market, box.instance_id] = listed

    def hear(self, strike: Strike, order: Order | None) -> None:
        """See what went wrong: only a question that the market never heard changes nothing that is known."""
        is_mere_silence = order is not None and not order.kind and strike.fault in UNHEARD - set(DEATH)
        self._is_muddled |= not is_mere_silence

    def hear_other(self) -> None:
        """See an order of another daemon."""
        self._is_muddled = True

    def dollars(self, order: Order, began: float, ledger: Path) -> float:
        """Return what an order of ours adds, before the market acts on it; the story began at `began`."""
        key, now = (order.market, order.target), self._truth.now
        box, since = self._truth.boxes.get(key), max(self._listed.get(key, began), self._ordered.get(key, 0.0))
        is_dark = order.kind in ENDS and now - since > DARK_SECONDS
        if box is None or not is_dark or not self._may_be(box, ledger):
            return 0.0
        self._ordered[key] = now
        return self._truth.full_rate(box) * (now - max(since, box.thing.created)) / 3600

    def _may_be(self, box: Box, ledger: Path) -> bool:
        thing = box.thing
        if not isinstance(thing, Contract) or thing.holds_gpu:
            return False
        is_of_the_market = thing.stop_cause not in _NOT_OF_THE_MARKET
        is_paused = bool(self._readings.rows(ledger, _PAUSED, box.market, box.instance_id))
        return (is_of_the_market or self._is_muddled) and not is_paused
