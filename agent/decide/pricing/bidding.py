"""Arithmetic that strategies share: opening bids, ceilings, and the meaning of a quoted floor.

Invariants:
1. A bid is never above the ceiling, and never at or above the known ask, where on-demand is the better buy.
2. A floor equal to one of our own recent bids on the same slice is our echo, never a price to beat.
"""

from collections.abc import Iterable

from agent.domain import money
from agent.domain.market import tenure
from agent.domain.record import lease

BID_PLACES = 4
"""Decimals of a dollar that markets keep of a bid; a bid is rounded up to them."""

ECHO_TOLERANCE = money.per_hour("0.0006")
"""The market shows our bid as a floor rounded to three decimals: half of the third decimal, plus our own rounding."""

LEAST_STEP = money.per_hour("0.001")
"""The smallest raise with an effect: quotes have three decimals."""

LEAST_GAP = 0.03
"""A bid closer than this share to its target is not changed: each change is a write, and a write can be lost."""

RUNGS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Shares of headroom to try: close together near the floor, far apart where only rivals matter."""


def ceiling(
    max_price: money.UsdPerHour, disk_rate: money.UsdPerHour, ask: money.UsdPerHour | None, share_of_ask: float
) -> money.UsdPerHour:
    """Return the highest hourly bid for the GPUs: the workload's price less disk, and a share of the ask."""
    most = max(money.FREE, max_price - disk_rate)
    if ask is None:
        return most
    return min(most, money.UsdPerHour(int(ask.micros * share_of_ask)))


def opening(floor: money.UsdPerHour, headroom: float, most: money.UsdPerHour) -> money.UsdPerHour | None:
    """Return the bid to open with: the floor plus headroom, capped; None when even the floor is above the ceiling."""
    least = money.rounded_up(floor, BID_PLACES)
    if least > most:
        return None
    return min(money.rounded_up(floor.scaled(1.0 + headroom), BID_PLACES), max(least, rounded(most)))


def ladder(most: float) -> tuple[float, ...]:
    """Return the shares of headroom to try, from none up to `most`."""
    return tuple(sorted({0.0, *(share for share in RUNGS if share < most), most}))


def price_to_outbid(held: lease.Lease, quotes: Iterable[money.UsdPerHour]) -> money.UsdPerHour | None:
    """Return the price that outbids the lease now, or None if it is not known.

    The winner's bid that the market reported counts first. A quoted floor counts only if it is not an echo of our own
    bids.
    """
    if held.rival_floor is not None:
        others = [quote for quote in quotes if not is_echo(held, quote)]
        return min([held.rival_floor, *others]) if others else held.rival_floor
    return min((quote for quote in quotes if not is_echo(held, quote)), default=None)


def is_echo(held: lease.Lease, quote: money.UsdPerHour) -> bool:
    """Return whether a quoted floor of the lease's slice is our own bid, repeated by the market."""
    own = (held.bid, *held.recent_bids)
    return any(abs(quote.micros - bid.micros) <= ECHO_TOLERANCE.micros for bid in own)


def rounded(rate: money.UsdPerHour) -> money.UsdPerHour:
    """Return the rate rounded down to the market's decimals, for bids that must not be higher."""
    step = 10 ** (6 - BID_PLACES)
    return money.UsdPerHour(rate.micros // step * step)


def lowered(held: lease.Lease, headroom: float, step_share: float) -> money.UsdPerHour | None:
    """Return the next lower bid of a raised one, or None if it need not fall.

    It falls by `step_share` of its distance to the host's floor plus headroom. That floor is from the instance's
    record, which never echoes our bid.
    """
    if held.tenure is not tenure.Tenure.INTERRUPTIBLE or held.host_floor is None or held.rival_floor is None:
        return None
    aim = opening(held.host_floor, headroom, held.gpu_rate)
    if aim is None or held.gpu_rate - aim < max(LEAST_STEP, held.gpu_rate.scaled(LEAST_GAP)):
        return None
    step = max((held.gpu_rate - aim).scaled(step_share), LEAST_STEP)
    return max(aim, rounded(held.gpu_rate - step))
