"""The grounds of every rule of `hedged`: the view, the numbers, the rankings and the slots' places."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from agent.decide.pricing import offer_terms, useful_hour
from agent.decide.pricing.worth import net_value, work_value
from agent.decide.service import hedging
from agent.decide.strategy import AUTO, Candidate, Pricing, SlotView, View
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
        most = work.prices.scaled(
            work_value.share(self.params.on_demand_share, work, self.params.unvalued["on_demand_share"])
        )
        within = [ask for ask in asks if ask.way.rate + ask.offer.disk_rate(work.disk_gb) <= most.of(ask.offer.gpu)]
        return self.spread.first(slot.slot, within, may_crowd=self.params.may_crowd)

    @property
    def is_by_value(self) -> bool:
        """Whether net value decides about on-demand, in place of `fallback_after` and `most_losses`."""
        return self.params.on_demand_share == AUTO and self.view.workload.value_per_hour is not None

    def best(self, slot: SlotView) -> Candidate | None:
        """Return the candidate of most net value for a slot, of either tenure; None without a stated value."""
        view, worth = self.view, self.view.workload.value_per_hour
        found = [each for each in (self.bid(slot), self.fallback(slot)) if each is not None]
        if worth is None:
            return None
        return max(found, key=lambda each: net_value.per_hour(each.reckoning, worth, view.fastest), default=None)

    def ask(self, slot: SlotView) -> Candidate | None:
        """Return the best on-demand candidate for a slot."""
        return self.spread.first(slot.slot, self.asks, may_crowd=self.params.may_crowd)

    def hazard(self, lease: Lease) -> float:
        """Return the expected losses to the market per hour of a lease on its host."""
        return useful_hour.contested_hazard(self.view.hosts.get(lease.host), self.view.market_hazard)


def _ranked(view: View, params: HedgedParams, way: Pricing) -> Iterator[Candidate]:
    """Yield candidates, best first; for warm slots and deadlines by cost: their own rules know the worth."""
    is_by_cost = params.keep_warm or (params.weigh_markets and view.workload.deadline is not None)
    return view.ranking(way) if is_by_cost else net_value.of_view(view, way)


def of(view: View, params: HedgedParams) -> Grounds:
    """Return the grounds for the slots of a view."""
    work = view.workload
    pricing = offer_terms.Bids(work.prices, work.disk_gb, params.headroom, params.ceiling, view.fastest, view.rivals)
    pricing = pricing.under(view.limit_markets, work.value_per_hour)
    asks = offer_terms.Asks(work.prices, work.disk_gb, view.fastest)
    return Grounds(
        view=view,
        params=params,
        pricing=pricing,
        bids=tuple(islice(_ranked(view, params, pricing), LOOK_AT)),
        asks=tuple(islice(_ranked(view, params, asks), LOOK_AT)),
        spread=hedging.Spread(
            view, hedging.Shares(params.share_of_host, params.share_of_owner, params.share_of_market)
        ),
        loss_rate=hedging.loss_rate(view, params.pool_window),
    )
