"""Points 2 and 5, too: where a bid is a limit, what waits for an auction counts at it, and ends before what works.

An Open bid costs nothing, and may start and bill at any auction.
"""

from collections.abc import Collection, Iterator

from agent.config.settings import Config
from agent.domain.slot import Slot
from agent.simulator.mithril.model import Bid, Status
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.orders import Order
from tests.disasters.points.stopping import ALLOWED_SECONDS, MOST_OF_A_CYCLE
from tests.disasters.sight import LISTED, Broken, Sight
from tests.disasters.truth import Box, Truth

ENDS = frozenset({"release", "pause"})
ROUNDING = 1e-4
BIDDING = frozenset({Status.OPEN, Status.ALLOCATED, Status.PREEMPTING})


class OpenBids:
    """Remembers what waits for which slot, and which of it was told to end."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._doubled: dict[Slot, float] = {}
        self._listed: dict[str, float] = {}
        """When a true listing first showed what waits, by its bid."""
        self._ended: set[str] = set()
        self._broken: list[tuple[int, str]] = []
        self._is_misled = False
        """Whether the market hid or changed a bid, or another daemon was there: then the sum is nobody's fault."""
        self._at = truth.now
        self.judged = 0

    def hear(self, order: Order) -> None:
        """See an order that something is wrong with: an ending that the market never got was sent all the same."""
        if order.market == MARKET and order.kind in ENDS:
            self._ended.add(order.target)

    def hear_other(self) -> None:
        """See an order of another daemon: ours knows of its bids by listings alone."""
        self._is_misled = True

    def leaves(self, order: Order, *, must_stop: str) -> None:
        """See an order before the market acts on it: with all to stop, what works ends after all that waits."""
        if order.market != MARKET or order.kind not in ENDS:
            return
        self._ended.add(order.target)
        box = self._truth.boxes.get((MARKET, order.target))
        waiting = sorted(self._listed.keys() - self._ended)
        # What has won since the last listing still waits as far as anybody knows.
        is_working = box is not None and box.thing.holds_gpu and order.target not in self._listed
        if must_stop and is_working and waiting:
            sentence = f"the end of {order.target}, which works, left after {must_stop} before that of {waiting[0]}"
            self._broken.append((5, f"{sentence}, which waits for an auction"))

    def look(self, sight: Sight, config: Config) -> Iterator[Broken]:
        """Yield the violations since the last look."""
        broken, self._broken = self._broken, []
        yield from (Broken(point, sight.cycle, sentence) for point, sentence in broken)
        passed, self._at = min(sight.now - self._at, MOST_OF_A_CYCLE), sight.now
        self._is_misled |= sight.is_shared
        self._is_misled |= any(each.market == MARKET and each.place in LISTED | {"rebid"} for each in sight.struck)
        waiting = [box for box in self._truth.live if box.is_waiting and box.label is not None]
        if not sight.saw_truly(MARKET):
            self._listed.clear()
            return
        leases = [lease for lease in sight.leases if lease.market == MARKET]
        known = {lease.instance_id for lease in leases if lease.is_proven}
        # What another daemon bid is held for a person.
        held = {lease.instance_id for lease in leases if lease.is_held}
        waiting = [box for box in waiting if box.instance_id not in held]
        self._listed = {box.instance_id: sight.now for box in waiting if box.instance_id in known}
        self._ended &= self._listed.keys()
        yield from self._twice(sight, waiting, passed)
        yield from self._above_cap(sight, config)

    def _twice(self, sight: Sight, waiting: list[Box], passed: float) -> Iterator[Broken]:
        """Yield the slots of which several bids wait for longer than an ending may take."""
        counts: dict[Slot, list[str]] = {}
        for box in waiting if not sight.is_shared else ():
            if box.label is not None:
                counts.setdefault(box.label.slot, []).append(box.instance_id)
        is_hindered = any(each.market in {MARKET, "ledger"} for each in sight.struck)
        several = {place: ids for place, ids in counts.items() if len(ids) > 1}
        self._doubled = {place: self._doubled.get(place, 0.0) + passed * (not is_hindered) for place in several}
        self.judged += len(counts)
        for place, seconds in self._doubled.items():
            if seconds > ALLOWED_SECONDS:
                yield Broken(2, sight.cycle, f"{' and '.join(several[place])} wait for {place} for {seconds:.0f} s")

    def _above_cap(self, sight: Sight, config: Config) -> Iterator[Broken]:
        """Yield that what bids may cost more than the cap on the rate, each at its limit."""
        cap = config.limits.per_hour
        if cap is None or self._is_misled or set(sight.fresh) != {MARKET}:
            return
        most = limits(self._truth)
        if most > cap.dollars + ROUNDING:
            yield Broken(2, sight.cycle, f"bids may cost ${most:.2f}/h, and the cap is ${cap.dollars:.2f}/h")


def limits(truth: Truth, held: Collection[str] = ()) -> float:
    """Return what our bids may cost an hour: an Open one at its limit, too, and a `held` one in any state.

    A bid that is held for a person was placed by another daemon, which may start it again.
    """
    boxes = ((box.instance_id, box.thing) for box in truth.live if box.label is not None)
    bids = ((name, thing) for name, thing in boxes if isinstance(thing, Bid))
    return sum(thing.limit_cents for name, thing in bids if thing.status in BIDDING or name in held) / 100
