"""Point 2, too: no order of ours makes an instance cost more, with its disk, than its workload may when it leaves.

An order on demand names no price: what a host asks may rise between the search and the rent. What was got is read back
and given up at once (rule 16), so it is judged by whether it is kept.
"""

from collections.abc import Callable, Iterator

from agent.config.settings import Config
from agent.domain.market.label import Label
from agent.domain.record.lease import LeaseState
from agent.simulator.dstack.model import Run
from agent.simulator.mithril.model import Bid
from agent.simulator.runpod.model import Pod
from agent.simulator.vast.model import Contract
from tests.disasters.orders import PAYING, Order
from tests.disasters.points.known import LISTINGS
from tests.disasters.sight import Broken, Sight
from tests.disasters.truth import Box, Truth, run_price

ROUNDING = 3e-6
"""Prices of GPUs and disks are each rounded to the micro-dollar."""
READ_BACK = 3
"""True listings after which what differs from its order is given up: two looks of one pass suffice."""


class Prices:
    """Knows what each workload was allowed to cost when an order for it last left, and every price that was judged."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._most: dict[Label | tuple[str, str], float] = {}
        """By the label of a rent, and by the instance of another order."""
        self._judged: dict[tuple[str, str], float] = {}
        self._listed: dict[tuple[str, str], int] = {}
        """How many true listings have shown what costs too much on demand, since the ledger has its lease."""
        self._unknown: dict[tuple[str, str], int] = {}
        """How many have shown it before."""

    def leaves(self, order: Order, config: Config) -> None:
        """See an order before the market acts on it; `config` is that of the daemon that sends it."""
        key = (order.market, order.target)
        box = self._truth.boxes.get(key)
        label = self._truth.label(order.label) if order.kind == "rent" else box.label if box is not None else None
        if order.kind not in PAYING or label is None:
            return
        most = (work.prices.highest.dollars for work in config.workloads if work.name == label.slot.workload)
        self._most |= {label if order.kind == "rent" else key: each for each in most}

    def judge(self, sight: Sight, may_look: Callable[[str, float], bool]) -> Iterator[Broken]:
        """Yield the rents and bids above that price. A host's higher price afterwards is no bid of ours.

        `may_look` says whether a cycle might ask a market for instances by their ids.
        """
        for box in sight.truth.live:
            key, bid = (box.market, box.instance_id), _bid(box)
            if box.label is None or (key in self._judged and bid is None):
                continue
            price = (bid if bid is not None else _asked(box)) + sight.truth.disk_rate(box)
            most = self._most.get(key, self._most.get(box.label))
            is_too_high = most is not None and price > max(most, self._judged.get(key, 0.0)) + ROUNDING
            if is_too_high and bid is None and not self._is_kept(sight, box, may_look):
                continue
            self._judged[key] = price
            if is_too_high:
                sentence = (
                    f"{box.market} {box.instance_id} costs ${price:.3f}/h, and {box.label.slot} may cost ${most:.3f}"
                )
                yield Broken(2, sight.cycle, sentence)

    def _is_kept(self, sight: Sight, box: Box, may_look: Callable[[str, float], bool]) -> bool:
        """Return whether what was rented on demand goes on although it could be read back.

        What is no lease yet, since its rent is in doubt, becomes one by listings and a look by its id.
        """
        key, is_listed = (box.market, box.instance_id), sight.saw_truly(box.market)
        lease = next((each for each in sight.leases if (each.market, each.instance_id) == key), None)
        if lease is None:
            is_known = box.is_ours and not sight.is_shared and may_look(box.market, sight.began)
            self._unknown[key] = self._unknown.get(key, 0) + (is_listed and is_known)
            return self._unknown[key] >= READ_BACK + LISTINGS
        if lease.state is LeaseState.RELEASING:
            return False
        self._listed[key] = self._listed.get(key, 0) + is_listed
        return self._listed[key] >= READ_BACK


def _bid(box: Box) -> float | None:
    thing = box.thing
    if isinstance(thing, Bid):
        # What it may cost at most: nobody knows at which price it will win.
        return thing.limit_cents / 100
    if isinstance(thing, Run) or thing.bid is None:
        return None
    return thing.rate if isinstance(thing, Pod) else thing.bid


def _asked(box: Box) -> float:
    thing = box.thing
    if isinstance(thing, Run):
        return run_price(thing)
    return thing.locked_ask if isinstance(thing, Contract) else thing.rate
