"""Fixed rules of bidding in a uniform auction, as strategies: they take the pool of the lowest price paid and stay.

Each is our own code of a rule in words. The limit of $32 is the default of the vendor's client. No client was found
whose code bids a share over the present price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agent.decide.pricing import useful_hour
from agent.decide.strategy import Params, Proposal, SlotView, Tuned, View
from agent.domain import money
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Reason

MOST = money.per_hour(32)
"""The default limit of the vendor's client. No rule bids more."""
_CENT = money.per_hour("0.01")


class NoNumbers(Params):
    """A fixed rule has no numbers to tune."""


@dataclass(frozen=True, slots=True)
class LimitRule:
    """Bid `over` times the price paid now, or `MOST` if it is None; then wait in the pool for good.

    If `follows`, a bid that waits is changed to the same share over each new price: its own loss sets that price.
    """

    params: ClassVar[type[Params]] = NoNumbers
    over: float | None = None
    follows: bool = False

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a bid for an empty slot, and a new limit for one that waits."""
        del params
        return [self._decide(slot, view) for slot in view.slots]

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the one way to hold the offer. Without its worth no value changes the limit."""
        if candidate.price_paid is None:
            return ()
        rate = candidate.price_paid if candidate.floor is None else candidate.floor
        limit = self._limit(candidate.price_paid)
        return (useful_hour.Way(Tenure.INTERRUPTIBLE, min(rate, limit), limit=limit),)

    def _limit(self, paid: UsdPerHour) -> UsdPerHour:
        if self.over is None:
            return MOST
        # At least a cent more: of equal bids the earlier one wins.
        return min(max(money.rounded_up(paid.scaled(self.over), 2), paid + _CENT), MOST)

    def _decide(self, slot: SlotView, view: View) -> Proposal:
        lease = slot.lease
        if lease is None:
            best = min(view.ranking(self), key=lambda each: (each.offer.price_paid, each.offer.offer_id), default=None)
            if best is None:
                return Proposal(slot.slot, None, Reason("no_offer", "no pool fits"))
            reason = Reason("best_offer", "the pool of the lowest price paid")
            return Proposal(slot.slot, IntentKind.RENT, reason, candidate=best)
        return self._followed(slot, lease, view) or Proposal(slot.slot, None, Reason("stays", "it runs or waits"))

    def _followed(self, slot: SlotView, lease: Lease, view: View) -> Proposal | None:
        """Return the bid over the price that a waiting bid just lost to, if that is another one."""
        if not self.follows or (slot.down is None and not lease.is_open_bid):
            return None
        here = (each.offer.price_paid for each in view.ranking(self) if each.offer.host == lease.host)
        paid = next(here, None)
        limit = None if paid is None else self._limit(paid)
        if limit is None or limit == lease.bid_limit:
            return None
        reason = Reason("follow_price", "the same share over the present price")
        return Proposal(slot.slot, IntentKind.REBID, reason, lease=lease, bid=limit)


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule, and where it comes from."""

    strategy: LimitRule
    source: str


RULES: Mapping[str, NamedRule] = {
    "spot_plus_10": NamedRule(
        LimitRule(1.1, follows=True), "1.1 times the spot price, again after each lost auction; rule of thumb"
    ),
    "spot_plus_10_once": NamedRule(LimitRule(1.1), "1.1 times the spot price of the first auction, never changed"),
    "always_32": NamedRule(LimitRule(), "$32.00, the default limit of the vendor's client (mithril-client 0.1.0rc3)"),
}


def tuned() -> dict[str, Tuned]:
    """Return the rules, ready for an engine."""
    return {name: Tuned(name, rule.strategy, NoNumbers(), "fixed") for name, rule in RULES.items()}
