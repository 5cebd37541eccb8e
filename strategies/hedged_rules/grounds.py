"""The grounds of every rule of `hedged`: the view, the numbers, the rankings and the slots' places."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from agent.decide.pricing import offer_terms, useful_hour
from agent.decide.service import hedging
from agent.decide.strategy import Candidate, SlotView, View
from agent.domain.record.lease import Lease
from strategies.hedged_rules.params import HedgedParams

LOOK_AT = 64
"""The most offers to look at for one that fits the shares: more slots in one workload are rare."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """Values that all slots of one view share."""

    view: View
    params: HedgedParams
    pricing: offer_terms.Bids
    """The way of bidding for interruptible capacity."""
    bids: Sequence[Candidate]
    """The interruptible candidates, best first."""
    asks: Sequence[Candidate]
    """The on-demand candidates, best first."""
    spread: hedging.Spread
    """The place of each slot, and whether one more fits within the shares."""
    loss_rate: float
    """The workload's recent rate of losses to the market, per slot and hour."""

    @property
    def is_bad(self) -> bool:
        """Whether the market interrupts at least as often as `most_losses`."""
        return self.loss_rate >= self.params.most_losses

    def bid(self, slot: SlotView) -> Candidate | None:
        """Return the best interruptible candidate for a slot."""
        return self.spread.first(slot.slot, self.bids, may_crowd=self.params.may_crowd)

    def fallback(self, slot: SlotView) -> Candidate | None:
        """Return the best on-demand candidate that a slot may fall back to."""
        work, asks = self.view.workload, self.asks
        most = work.prices.scaled(self.params.on_demand_share)
        within = [ask for ask in asks if ask.way.rate + ask.offer.disk_rate(work.disk_gb) <= most.of(ask.offer.gpu)]
        return self.spread.first(slot.slot, within, may_crowd=self.params.may_crowd)

    def ask(self, slot: SlotView) -> Candidate | None:
        """Return the best on-demand candidate for a slot."""
        return self.spread.first(slot.slot, self.asks, may_crowd=self.params.may_crowd)

    def hazard(self, lease: Lease) -> float:
        """Return the expected losses to the market per hour of a lease on its host."""
        return useful_hour.contested_hazard(self.view.hosts.get(lease.host), self.view.market_hazard)


def of(view: View, params: HedgedParams) -> Grounds:
    """Return the grounds for the slots of a view."""
    work = view.workload
    pricing = offer_terms.Bids(work.prices, work.disk_gb, params.headroom, params.ceiling, view.fastest, view.rivals)
    pricing = pricing.under(view.limit_markets, work.value_per_hour)
    return Grounds(
        view=view,
        params=params,
        pricing=pricing,
        bids=tuple(islice(view.ranking(pricing), LOOK_AT)),
        asks=tuple(islice(view.ranking(offer_terms.Asks(work.prices, work.disk_gb, view.fastest)), LOOK_AT)),
        spread=hedging.Spread(
            view, hedging.Shares(params.share_of_host, params.share_of_owner, params.share_of_market)
        ),
        loss_rate=hedging.loss_rate(view, params.pool_window),
    )
