"""Ways to hold an offer that strategies share. They are values, so that workloads with equal ways share one search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.decide.pricing import bidding, useful_hour
from agent.decide.pricing.rival_bids import ASSUMED, Rivals
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import FREE, UsdPerHour
from agent.domain.work.workload import MaxPrice


def speed(dlperf: float, fastest: float, most: float = 1.0) -> float:
    """Return an hour's work on this GPU as a share of the fastest one's, at most `most`; 1 if either is unknown.

    `fastest` is the usual speed of the fastest model. Where an hour is weighed by its work, a GPU above it counts more.
    """
    return min(dlperf / fastest, most) if dlperf > 0 and fastest > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Asks:
    """On demand at the listed price. If `fastest` is given, an hour on a slower GPU counts in proportion."""

    max_price: MaxPrice
    disk_gb: float
    fastest: float = 0.0

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the ask if GPU and disk are within the price."""
        ask = candidate.ask
        most = self.max_price.at_speed(candidate.gpu, speed(candidate.dlperf, self.fastest))
        if ask is None or ask + candidate.disk_rate(self.disk_gb) > most:
            return ()
        return (useful_hour.Way(Tenure.ON_DEMAND, ask),)


@dataclass(frozen=True, slots=True)
class Bids:
    """Bids from the floor up to `headroom` over it, never above `ceiling` of the ask."""

    max_price: MaxPrice
    disk_gb: float
    headroom: float
    """The most headroom to try, as a share of the floor."""
    ceiling: float
    """The highest bid as a share of the ask."""
    fastest: float = 0.0
    """The usual DLPerf of the workload's fastest model, as for `Asks`; 0: every hour counts in full."""
    rivals: Rivals = ASSUMED
    """The law that gives the share of losses that a bid avoids."""
    limits: frozenset[str] = frozenset()
    """The markets where the price paid is not the bid, but the price to win."""
    value: UsdPerHour | None = None
    """The highest bid there; None: the highest price."""

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the bids to try. Which one is cheapest depends on the cost of an interruption on that host."""
        if candidate.floor is None:
            return ()
        if candidate.market in self.limits:
            return limits(candidate, self, max(candidate.floor, candidate.price_paid or candidate.floor))
        disk = candidate.disk_rate(self.disk_gb)
        worth = self.max_price.at_speed(candidate.gpu, speed(candidate.dlperf, self.fastest))
        most = bidding.ceiling(worth, disk, candidate.ask, self.ceiling)
        return list(self._rising(candidate.floor, most, 0.0 if candidate.is_price_taken else self.headroom))

    def under(self, markets: frozenset[str], value: UsdPerHour | None) -> "Bids":
        """Return the same bids, as limits in these markets; `value` is what an hour is worth, None: the price."""
        return replace(self, limits=markets, value=value) if markets else self

    def _rising(self, floor: UsdPerHour, most: UsdPerHour, headroom: float) -> Iterator[useful_hour.Way]:
        last = None
        for share in bidding.ladder(headroom):
            bid = bidding.opening(floor, share, most)
            if bid is None or bid == last:
                return
            last = bid
            over = bid.micros / floor.micros - 1.0 if floor.micros else share
            yield useful_hour.Way(Tenure.INTERRUPTIBLE, bid, self.rivals.losing_share(over))


def limits(candidate: Offer, bids: Bids, expected: UsdPerHour | None) -> Sequence[useful_hour.Way]:
    """Return one bid at the worth of an hour, with the expected price; none if the price is above that worth.

    If no price is expected, the bid waits, and is itself the highest price.
    """
    share = speed(candidate.dlperf, bids.fastest)
    most = bids.max_price.at_speed(candidate.gpu, share)
    worth = most if bids.value is None else bids.value.scaled(share)
    limit = min(worth, most - candidate.disk_rate(bids.disk_gb))
    price = limit if expected is None else expected
    if limit <= FREE or price > limit:
        return ()
    over = limit.micros / price.micros - 1.0 if price.micros else bids.headroom
    avoided = bids.rivals.losing_share(over)
    return (useful_hour.Way(Tenure.INTERRUPTIBLE, price, avoided, limit, worth, is_waiting=expected is None),)


@dataclass(frozen=True, slots=True)
class WaitingBids:
    """Bids that wait for an auction, without an expected price.

    They are for offers whose price to win is unknown, or above the limit.
    """

    bids: Bids

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the bid, if one may be placed there. The ranking refuses a bid that would win now."""
        may_bid = candidate.is_price_unknown or candidate.floor is not None
        if not may_bid or candidate.market not in self.bids.limits:
            return ()
        return limits(candidate, self.bids, None)


@dataclass(frozen=True, slots=True)
class Ways:
    """Bids, and the ask too if `asks` is given."""

    bids: Bids
    asks: Asks | None = None

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return every way to hold the offer."""
        ways = list(self.bids(candidate))
        return ways if self.asks is None else [*ways, *self.asks(candidate)]
