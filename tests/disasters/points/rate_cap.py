"""Point 6, too: a slot is excused by the cap on the rate only while no start of its work fits beside what counts."""

import math
from collections.abc import Mapping

from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload
from agent.simulator.mithril.model import Bid
from tests.disasters.auctions.auction_draw import MARKET
from tests.disasters.clouds.cloud_draw import MARKET as CLOUDS
from tests.disasters.points import open_bids, pool_room
from tests.disasters.points.room import ROOM
from tests.disasters.sight import Sight
from tests.disasters.truth import Box, Truth


def forbids(sight: Sight, truth: Truth, work: Workload) -> bool:
    """Return whether a cap leaves no room for one more slot of a workload."""
    cap = sight.app.rules.caps.per_hour
    if cap is None:
        return False
    left = cap.dollars - counted(sight, truth)
    return left < work.prices.highest.dollars and (_may_choose(sight, work) or left < least_start(truth, work))


def _may_choose(sight: Sight, work: Workload) -> bool:
    """Return whether a strategy may prefer another market, where a start counts at a bid that no cap cuts.

    It chooses by the cost of a useful hour, and chooses again only where a start that fits is worth its price.
    """
    return any(name != MARKET and work.may_use(name) for name in sight.app.markets)


def counted(sight: Sight, truth: Truth) -> float:
    """Return what the cap counts an hour: our bids at their limits, what may start again as running, and all disks."""
    leases = {(lease.market, lease.instance_id): lease for lease in sight.leases if lease.is_open}
    held = {lease.instance_id for lease in leases.values() if lease.is_held}
    disks = sum(lease.disk_rate.dollars for lease in leases.values() if lease.market == MARKET)
    others = ((box, leases.get((box.market, box.instance_id))) for box in truth.live if box.label is not None)
    rates = (_rate(truth, box, lease) for box, lease in others if not isinstance(box.thing, Bid))
    return open_bids.limits(truth, held) + disks + sum(rates) + _unproven(truth, leases)


def _unproven(truth: Truth, leases: Mapping[tuple[str, str], Lease]) -> float:
    """Return what counts although its cloud has taken it back: nobody has proven that yet."""
    boxes = ((truth.boxes.get(place), lease) for place, lease in leases.items() if place[0] == CLOUDS)
    gone = (lease for box, lease in boxes if box is not None and not box.is_live)
    return sum(lease.billing_rate.dollars for lease in gone)


def _rate(truth: Truth, box: Box, lease: Lease | None) -> float:
    is_stopped = lease is not None and lease.paused_by_us
    return truth.rate(box) if is_stopped else max(truth.rate(box), truth.full_rate(box))


def least_start(truth: Truth, work: Workload) -> float:
    """Return the least that one more slot has to count at an hour: a limit may be cut to the price that wins.

    Elsewhere a start counts at its bid, which may be the highest price of the work.
    """
    prices = pool_room.prices(truth.auctions, work) if work.may_use(MARKET) and truth.auctions is not None else ()
    return min((price * ROOM for price in prices), default=math.inf)
