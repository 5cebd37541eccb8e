"""The prices of a pool as the market shows them, now and in the past, cents per instance and hour."""

import dataclasses
import random

from agent.simulator.mithril.pool_auction import PoolAuction


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """The prices that the market shows of a pool now; None: not shown."""

    spot: int
    reserved: int
    minimum: int
    lowest_allocated: int | None
    price_to_win: int | None
    free: int
    total: int


def tells(share: float, pool_fid: str) -> bool:
    """Return whether a pool shows its lowest winning bid and the price to win; `share` of the pools do."""
    return random.Random(f"{pool_fid}/tells").random() < share


def now(pool: PoolAuction, quantity: int, *, is_telling: bool) -> Told:
    """Return the prices that the market shows of a pool to a renter who wants `quantity` instances."""
    sold = pool.pool
    return Told(
        spot=pool.spot_cents,
        reserved=sold.reserved_cents,
        minimum=sold.minimum_cents,
        lowest_allocated=pool.lowest_cents if is_telling else None,
        price_to_win=pool.price_to_win(quantity) if is_telling else None,
        free=pool.free,
        total=sold.total,
    )


def sampled(pool: PoolAuction, since: float, until: float, samples: int) -> list[tuple[float, int]]:
    """Return the price at `samples` instants of a span; every change of it for a negative number."""
    known = [(at, cents) for at, cents in pool.prices if at <= until]
    if samples < 0:
        return [(max(at, since), cents) for at, cents in known[_last_before(known, since) :]]
    step = (until - since) / max(samples - 1, 1)
    instants = [since + step * number for number in range(samples)]
    return [(at, known[_last_before(known, at)][1]) for at in instants if known and at >= known[0][0]]


def _last_before(prices: list[tuple[float, int]], at: float) -> int:
    """Return the place of the price in force at an instant."""
    places = [place for place, (since, _) in enumerate(prices) if since <= at]
    return places[-1] if places else 0
