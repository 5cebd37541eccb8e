"""The rules of one auction: who wins, and the one price that all winners pay.

1. The highest limit goes first; of equal limits the earlier bid.
2. All or nothing: a bid that does not fit into the capacity left loses. Its limit is the price, and who bids less loses
   as well, even where instances stay free: nobody is allocated below the price.
3. Every winner pays the limit of the highest loser, or the minimum without one.
4. A bid for more than there is at all sets no price. The documents do not say so; it is assumed.
"""

import dataclasses
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """One bid as the auction sees it. `order` ranks equal limits, the smallest first.

    A claim that may not win has been given notice: it counts as a loser until it is gone.
    """

    key: int
    limit_cents: int  # per instance and hour
    quantity: int  # instances
    order: float
    may_win: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one auction; `winners` by rank."""

    winners: tuple[Claim, ...]
    losers: tuple[Claim, ...]
    price_cents: int

    @property
    def lowest_cents(self) -> int | None:
        """Return the lowest limit that won; None if nobody did."""
        return min((claim.limit_cents for claim in self.winners), default=None)


def clear(capacity: int, claims: Iterable[Claim], minimum_cents: int) -> Outcome:
    """Judge all claims on `capacity` instances."""
    left, cutoff = capacity, 0
    winners: list[Claim] = []
    losers: list[Claim] = []
    for claim in sorted(claims, key=lambda claim: (-claim.limit_cents, claim.order)):
        may_win = claim.may_win and claim.limit_cents >= max(cutoff, minimum_cents)
        if may_win and claim.quantity <= left:
            winners.append(claim)
            left -= claim.quantity
            continue
        losers.append(claim)
        if claim.quantity <= capacity:
            cutoff = max(cutoff, claim.limit_cents)
    return Outcome(tuple(winners), tuple(losers), max(cutoff, minimum_cents))


def price_to_win(capacity: int, claims: Sequence[Claim], minimum_cents: int, quantity: int) -> int | None:
    """Return the lowest limit at which a further bid for `quantity` instances wins; None if none does."""
    if quantity > capacity:
        return None
    latest = max((claim.order for claim in claims), default=0.0) + 1.0
    limits = (limit for claim in claims for limit in (claim.limit_cents, claim.limit_cents + 1))
    for limit in sorted({minimum_cents, *limits}):
        further = Claim(-1, limit, quantity, latest)
        if further in clear(capacity, [*claims, further], minimum_cents).winners:
            return further.limit_cents
    return None
