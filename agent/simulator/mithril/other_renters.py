"""Other renters: rivals that bid and reservations that take capacity, drawn per pool: our actions change no draw.

A pool with recorded figures begins with them: its holders bid at least its price, and one loser sets the price.
"""

import dataclasses
import math
import random

from agent.simulator import demand
from agent.simulator.climate import Climate
from agent.simulator.event_queue import Timeline
from agent.simulator.mithril import assumed_figures
from agent.simulator.mithril.climate_table import Mithril
from agent.simulator.mithril.pool_auction import Bidder, PoolAuction

_HOUR = 3600.0
FIRST_RIVAL = 80_000_001  # apart from the numbers of our bids
_MEAN_QUANTITY = sum(assumed_figures.RIVAL_QUANTITIES) / len(assumed_figures.RIVAL_QUANTITIES)
_MEAN_HOURS = assumed_figures.RIVAL_HOURS[0] * math.exp(assumed_figures.RIVAL_HOURS[1] ** 2 / 2)
_OVER_FIRST_SPOT = (1.05, 2.0)


@dataclasses.dataclass(slots=True)
class _Numbers:
    next: int = FIRST_RIVAL


class Crowd:
    """Brings other renters and removes them."""

    def __init__(self, timeline: Timeline, climate: Climate, pools: list[PoolAuction], seed: str) -> None:
        """Fill every pool, and plan who comes next."""
        self._timeline = timeline
        self._climate = climate
        self._start = timeline.now
        self._numbers = _Numbers()
        self.invited: dict[int, PoolAuction] = {}
        for pool in pools:
            rng = random.Random(f"{seed}/crowd/{pool.pool.fid}")
            self._settle(pool, rng)
            self._await_rival(pool, rng)
            self._await_reservation(pool, random.Random(f"{seed}/reservations/{pool.pool.fid}"))

    def invite(self, pool: PoolAuction, limit_cents: int, quantity: int) -> int:
        """Let a rival bid until it is dismissed; return its number."""
        bidder = self._bidder(limit_cents, quantity)
        self.invited[bidder.number] = pool
        pool.add(bidder)
        return bidder.number

    def dismiss(self, number: int) -> bool:
        """Remove a rival. Return False if none has that number."""
        pool = self.invited.pop(number, None)
        if pool is not None:
            pool.remove(number)
        return pool is not None

    def _bidder(self, limit_cents: int, quantity: int, *, is_holding: bool = False) -> Bidder:
        number = self._numbers.next
        self._numbers.next += 1
        order = self._timeline.now - (1.0 if is_holding else 0.0)
        return Bidder(number, limit_cents, quantity, order, is_holding=is_holding)

    def _settle(self, pool: PoolAuction, rng: random.Random) -> None:
        """Put the first holders into a pool, and the loser that sets its price."""
        sold = pool.pool
        held = sold.total - sold.free if sold.free is not None else round(sold.total * self._taken(rng))
        spot = sold.first_spot_cents
        if spot is None:
            spot = max(round(sold.reserved_cents * rng.uniform(0.2, 0.8)), sold.minimum_cents)
        bidders = []
        for _ in range(held):
            limit = max(_limit(rng, sold.reserved_cents), math.ceil(spot * rng.uniform(*_OVER_FIRST_SPOT)))
            bidders.append(self._bidder(limit, 1, is_holding=True))
            self._leave_later(pool, bidders[-1], rng)
        loser = self._bidder(spot, sold.total - held + 1)
        self._leave_later(pool, loser, rng)
        pool.begin([*bidders, loser], spot if held else sold.minimum_cents)

    def _taken(self, rng: random.Random) -> float:
        return min(max(rng.gauss(self._climate.demand.taken, 0.15), 0.0), 1.0)

    def _leave_later(self, pool: PoolAuction, bidder: Bidder, rng: random.Random) -> None:
        # In a world to which nobody comes nobody leaves either.
        seconds = _stay(rng)
        if self._climate.demand.arrivals > 0:
            self._timeline.put(self._timeline.now + seconds, lambda: pool.remove(bidder.number))

    def _await_rival(self, pool: PoolAuction, rng: random.Random) -> None:
        per_hour = self._climate.table(Mithril).load * pool.pool.total / _MEAN_QUANTITY / _MEAN_HOURS
        gap = demand.gap(rng, per_hour * self._climate.demand.arrivals)
        if gap < math.inf:
            self._timeline.put(self._timeline.now + gap, lambda: self._come(pool, rng))

    def _come(self, pool: PoolAuction, rng: random.Random) -> None:
        quantity, limit = rng.choice(assumed_figures.RIVAL_QUANTITIES), _limit(rng, pool.pool.reserved_cents)
        limit = max(round(limit * self._surge(pool)), pool.pool.minimum_cents)
        bidder = self._bidder(limit, min(quantity, pool.pool.total))
        pool.add(bidder)
        self._leave_later(pool, bidder, rng)
        self._await_rival(pool, rng)

    def _surge(self, pool: PoolAuction) -> float:
        """Return by how much the climate's spikes raise the limits of those who come now."""
        age, factor = self._timeline.now - self._start, 1.0
        for spike in self._climate.spikes:
            is_on = spike.at_seconds <= age < spike.at_seconds + spike.seconds
            if is_on and (not spike.gpus or pool.pool.kind.gpu_type in spike.gpus):
                factor *= spike.factor
        return factor

    def _await_reservation(self, pool: PoolAuction, rng: random.Random) -> None:
        per_hour = assumed_figures.RESERVATIONS_PER_DAY / 24.0 * self._climate.table(Mithril).reservations
        gap = demand.gap(rng, per_hour * self._climate.demand.arrivals)
        if gap < math.inf:
            self._timeline.put(self._timeline.now + gap, lambda: self._reserve(pool, rng))

    def _reserve(self, pool: PoolAuction, rng: random.Random) -> None:
        median, deviation = assumed_figures.RESERVATION_HOURS
        share, hours = rng.uniform(*assumed_figures.RESERVED_SHARE), median * math.exp(deviation * rng.gauss(0.0, 1.0))
        quantity = min(max(round(pool.pool.total * share), 1), pool.capacity)
        pool.reserve(quantity)
        self._timeline.put(self._timeline.now + hours * _HOUR, lambda: pool.reserve(-quantity))
        self._await_reservation(pool, rng)


def _limit(rng: random.Random, reserved_cents: int) -> int:
    """Draw the limit of one rival, cents an hour."""
    drawn, size = rng.random(), rng.gauss(0.0, 1.0)
    _, median, deviation = assumed_figures.RIVAL_LIMITS[-1]
    for share, *kind in assumed_figures.RIVAL_LIMITS:
        if drawn < share:
            median, deviation = kind
            break
        drawn -= share
    return max(round(reserved_cents * median * math.exp(deviation * size)), 1)


def _stay(rng: random.Random) -> float:
    """Draw how long a rival wants its instances, seconds."""
    median, deviation = assumed_figures.RIVAL_HOURS
    return _HOUR * median * math.exp(deviation * rng.gauss(0.0, 1.0))
