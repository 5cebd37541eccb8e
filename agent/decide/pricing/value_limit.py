"""The limit of a bid where the price paid is not the bid: what a rented hour is worth to its owner at most.

Theory: all winners of a uniform auction pay the highest losing bid, which no winner's own bid sets. If each wants one
unit, no bid is ever better than the value: a lower one loses hours that are worth more than they cost, a higher one
wins hours that cost more than they are worth (Vickrey, Journal of Finance 16(1), 1961). A rented hour is worth the
value of its useful part. The restore, and the work that the losses of a stay are expected to repeat, are not useful.
The stay also pays for disk and traffic.

Invariants:
1. A limit is never above the value of an hour, nor, with the disk, above the highest price.
2. It falls when the risk of a loss, the restore, the disk or the traffic rise, all else equal.
"""

import msgspec

from agent.decide.pricing import useful_hour
from agent.domain import money
from agent.domain.money import UsdPerHour
from agent.domain.record.lease import Lease
from agent.domain.work.workload import Workload

CENT = money.per_hour("0.01")


def of_stay(worth: UsdPerHour, most: UsdPerHour, stay: useful_hour.StayCost) -> UsdPerHour:
    """Return the limit at which a stay neither gains nor loses, at most `most`; `worth` is that of a useful hour."""
    hours = stay.useful_hours + stay.lost_hours + stay.restore_hours
    once = stay.disk_dollars + stay.traffic_dollars + stay.egress_dollars
    net = (worth.dollars * stay.useful_hours - once) / hours
    return _in_cents(max(money.FREE, min(most, worth, money.per_hour(round(net, 6)))))


def settled(
    way: useful_hour.Way, stay: useful_hour.StayCost, to_win: UsdPerHour | None = None
) -> useful_hour.Way | None:
    """Return a way with the limit of its stay, or unchanged without a limit; None if an hour costs more than its worth.

    A waiting bid is calculated at its highest price, because no price is expected. The result is None too if `to_win`,
    the price that wins, is within the limit: such a bid would not wait.
    """
    if way.limit is None or way.worth is None:
        return way
    limit = of_stay(way.worth, way.limit, stay)
    if limit <= money.FREE:
        return None
    if way.is_waiting:
        wins = to_win is not None and to_win <= limit
        return None if wins else msgspec.structs.replace(way, limit=limit, rate=limit)
    return None if limit < way.rate else msgspec.structs.replace(way, limit=limit)


def of_lease(lease: Lease, work: Workload, worth: UsdPerHour, most: UsdPerHour, hazard: float) -> UsdPerHour:
    """Return the limit of a lease for its time ahead, which has no loading and no traffic.

    `most` is the highest price with the disk. `hazard` is losses to the market per hour.
    """
    net = worth.scaled(useful_hour.useful_share(work.checkpoint, hazard)) - lease.disk_rate
    return _in_cents(max(money.FREE, min(net, worth, most - lease.disk_rate)))


def _in_cents(limit: UsdPerHour) -> UsdPerHour:
    """Return a limit rounded down to whole cents, as auctions keep it: another one would never be read back."""
    return UsdPerHour(limit.micros // CENT.micros * CENT.micros)
