"""Point 4: what counts because its market may have given it back in a dark stretch (spend-bounds.md).

An order adds it that ends what is stopped, or the next listing, if no record of the stretch could be read.

Only Vast gives a GPU back by itself, and only where it took the GPU itself, not where an order of ours paused it.
"""

from pathlib import Path

from agent.simulator.mithril.model import Bid
from agent.simulator.vast.model import Contract, StopCause
from tests.disasters.exchange import UNHEARD
from tests.disasters.orders import Order
from tests.disasters.points.fading import ENDS
from tests.disasters.readings import Readings
from tests.disasters.story import Strike
from tests.disasters.strikes import DEATH
from tests.disasters.truth import Box, Truth

DARK_SECONDS = 110.0
"""The market may have given back an instance that was not listed for longer."""
STARTS = frozenset({"resume", "rebid"})
"""Orders that may start what is stopped; the metering before them came first."""
METERED_SECONDS = 360.0
"""The last metering of a lease may be so long before the last look at it."""
_PAUSED = "SELECT 1 FROM leases WHERE market = ? AND instance_id = ? AND paused_by_us = 1"
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
        self._unread: set[str] = set()
        """The markets whose record could not be read once: it may be closed for longer than anybody sees."""
        self._forgotten: set[str] = set()
        """The markets that no true listing was read of since a process died, which remembers no look."""
        self._resumed: set[tuple[str, str]] = set()
        """What an order of ours started since the last look, that was stopped before it."""
        self._is_muddled = False
        """Whether the program may have forgotten a pause of its own, or another daemon gave one."""

    def see(self, market: str, listed: float, began: float) -> float:
        """See that a true listing of a market began at `listed`; return what it adds. The story began at `began`."""
        added = 0.0
        for box in self._truth.live:
            if box.market != market:
                continue
            since = self._listed.get((market, box.instance_id), began)
            since = max(since - (METERED_SECONDS if market in self._forgotten else 0.0), box.thing.created)
            is_stopped = self._may_be_back(box) or (market, box.instance_id) in self._resumed
            if market in self._unread and listed - since > DARK_SECONDS and is_stopped:
                added += self._rate(box) * (listed - since) / 3600
            self._listed[market, box.instance_id] = listed
        self._forgotten.discard(market)
        self._resumed = {key for key in self._resumed if key[0] != market}
        return added

    def die(self) -> None:
        """See that a process died: the next one knows the last metering, and not the last look."""
        self._forgotten |= {market for market, _ in self._truth.boxes}

    def hear(self, strike: Strike, order: Order | None) -> None:
        """See what went wrong: only a question that the market never heard changes nothing that is known."""
        if strike.place == "inbox" or strike.fault == "throttled":
            self._unread.add(strike.market)
        is_mere_silence = order is not None and not order.kind and strike.fault in UNHEARD - set(DEATH)
        self._is_muddled |= not is_mere_silence

    def hear_other(self) -> None:
        """See an order of another daemon."""
        self._is_muddled = True

    def dollars(self, order: Order, began: float, ledger: Path) -> float:
        """Return what an order of ours adds, before the market acts on it; the story began at `began`."""
        key, now = (order.market, order.target), self._truth.now
        box, since = self._truth.boxes.get(key), max(self._listed.get(key, began), self._ordered.get(key, 0.0))
        if box is not None and order.kind in STARTS and self._may_be_back(box):
            self._resumed.add(key)
        is_dark = order.kind in ENDS and now - since > DARK_SECONDS
        if box is None or not is_dark or not self._may_be(box, ledger):
            return 0.0
        self._ordered[key] = now
        return self._truth.full_rate(box) * (now - max(since, box.thing.created)) / 3600

    def _may_be(self, box: Box, ledger: Path) -> bool:
        is_paused = bool(self._readings.rows(ledger, _PAUSED, box.market, box.instance_id))
        return self._is_stopped(box) and not is_paused

    def _may_be_back(self, box: Box) -> bool:
        return self._is_stopped(box) or (isinstance(box.thing, Bid) and not box.thing.holds_gpu)

    def _rate(self, box: Box) -> float:
        thing, rate = box.thing, self._truth.full_rate(box)
        return max(rate, thing.limit_cents / 100) if isinstance(thing, Bid) else rate

    def _is_stopped(self, box: Box) -> bool:
        """Return whether the market took a GPU, as far as anybody knows."""
        thing = box.thing
        if not isinstance(thing, Contract) or thing.holds_gpu:
            return False
        return thing.stop_cause not in _NOT_OF_THE_MARKET or self._is_muddled
