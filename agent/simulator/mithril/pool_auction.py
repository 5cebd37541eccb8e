"""The auction of one pool as time goes on: who holds its instances, who leaves them, who waits, and the price.

1. Bids are judged at full multiples of two minutes, and only when something has changed since: without a change the
   result is the same.
2. A holder that loses is given notice. It keeps its instances for five minutes and then waits again.
3. A winner starts as soon as enough instances are free; until then it waits, and nobody behind it takes them.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from agent.simulator.event_queue import Timeline
from agent.simulator.mithril import assumed_figures, auction
from agent.simulator.mithril.auction import Claim
from agent.simulator.mithril.places import Pool


@dataclasses.dataclass(slots=True, eq=False)
class Bidder:
    """One bid in a pool, ours or a rival's. `order` ranks equal limits."""

    number: int
    limit_cents: int
    quantity: int
    order: float
    owner: Any = None  # our bid; None is a rival
    is_holding: bool = False
    leaves_at: float | None = None

    def claim(self) -> Claim:
        """Return it as the auction sees it."""
        return Claim(self.number, self.limit_cents, self.quantity, self.order, may_win=self.leaves_at is None)


class PoolAuction:
    """Judges the bids of one pool. The listeners hear of our bids alone: starts, notices, ends and prices."""

    def __init__(self, timeline: Timeline, pool: Pool) -> None:
        """Begin empty, at the minimum price."""
        self.pool = pool
        self._timeline = timeline
        self._bidders: dict[int, Bidder] = {}
        self._due: float | None = None
        self.reserved = 0
        self.lowest_cents: int | None = None
        self.prices: list[tuple[float, int]] = [(timeline.now, pool.minimum_cents)]
        self.on_start: Callable[[Any], None] = lambda _: None
        self.on_notice: Callable[[Any], None] = lambda _: None
        self.on_end: Callable[[Any], None] = lambda _: None
        self.on_price: Callable[[Any, int], None] = lambda *_: None

    @property
    def spot_cents(self) -> int:
        """Return the price of the last auction."""
        return self.prices[-1][1]

    @property
    def capacity(self) -> int:
        """Return how many instances are not reserved."""
        return max(self.pool.total - self.reserved, 0)

    @property
    def free(self) -> int:
        """Return how many instances nobody holds."""
        return max(self.capacity - sum(bidder.quantity for bidder in self._bidders.values() if bidder.is_holding), 0)

    def bidders(self) -> list[Bidder]:
        """Return every bid, in order of arrival."""
        return list(self._bidders.values())

    def price_to_win(self, quantity: int) -> int | None:
        """Return the limit at which a further bid would win the next auction; None if none would."""
        claims = [bidder.claim() for bidder in self._bidders.values()]
        return auction.price_to_win(self.capacity, claims, self.pool.minimum_cents, quantity)

    # --- changes, which the next auction judges -----------------------------------------------------------------------
    def add(self, bidder: Bidder) -> None:
        """Add a bid."""
        self._bidders[bidder.number] = bidder
        self._touch()

    def remove(self, number: int) -> None:
        """Remove a bid; the instances it held are free at once."""
        if self._bidders.pop(number, None) is not None:
            self._touch()

    def reprice(self, number: int, limit_cents: int) -> None:
        """Change a limit. Its rank among equal limits stays."""
        self._bidders[number].limit_cents = limit_cents
        self._touch()

    def reserve(self, quantity: int) -> None:
        """Take instances out of the auction, or give them back with a negative number."""
        self.reserved += quantity
        self._touch()

    def begin(self, bidders: list[Bidder], spot_cents: int) -> None:
        """Begin with holders and waiting bids whose auction is over, at its price."""
        self._bidders = {bidder.number: bidder for bidder in bidders}
        self.prices = [(self._timeline.now, spot_cents)]
        self._note_lowest()

    # --- the auction --------------------------------------------------------------------------------------------------
    def _touch(self) -> None:
        if self._due is None:
            step = assumed_figures.AUCTION_SECONDS
            self._due = (math.floor(self._timeline.now / step) + 1) * step
            self._timeline.put(self._due, self._judge)

    def _judge(self) -> None:
        self._due = None
        claims = [bidder.claim() for bidder in self._bidders.values()]
        outcome = auction.clear(self.capacity, claims, self.pool.minimum_cents)
        for claim in outcome.losers:
            loser = self._bidders[claim.key]
            if loser.is_holding and loser.leaves_at is None:
                self._give_notice(loser)
        if outcome.price_cents != self.spot_cents:
            self.prices.append((self._timeline.now, outcome.price_cents))
            for bidder in self._bidders.values():
                if bidder.is_holding and bidder.leaves_at is None and bidder.owner is not None:
                    self.on_price(bidder.owner, outcome.price_cents)
        self._start(outcome.winners)
        self._note_lowest()

    def _start(self, winners: tuple[Claim, ...]) -> None:
        free = self.free
        for claim in winners:
            winner = self._bidders[claim.key]
            if winner.is_holding:
                continue
            if winner.quantity <= free:
                winner.is_holding = True
                if winner.owner is not None:
                    self.on_start(winner.owner)
            free -= winner.quantity

    def _give_notice(self, bidder: Bidder) -> None:
        leaves_at = bidder.leaves_at = self._timeline.now + assumed_figures.NOTICE_SECONDS
        if bidder.owner is not None:
            self.on_notice(bidder.owner)
        self._timeline.put(leaves_at, lambda: self._shut_down(bidder, leaves_at))

    def _shut_down(self, bidder: Bidder, leaves_at: float) -> None:
        if self._bidders.get(bidder.number) is not bidder or bidder.leaves_at != leaves_at:
            return
        bidder.is_holding, bidder.leaves_at = False, None
        if bidder.owner is not None:
            self.on_end(bidder.owner)
        self._touch()

    def _note_lowest(self) -> None:
        holding = (bidder for bidder in self._bidders.values() if bidder.is_holding and bidder.leaves_at is None)
        self.lowest_cents = min((bidder.limit_cents for bidder in holding), default=None)
