"""Pay the listed price and never be outbid: the baseline every other strategy is measured against."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from pydantic import Field

from agent.decide import price
from agent.decide.strategy import Candidate, Params, Pricing, Proposal, SlotView, View
from agent.domain.decision import Option, Reason
from agent.domain.intent import IntentKind
from agent.domain.lease import LeaseState
from agent.domain.offer import Offer
from agent.domain.tenure import Tenure


class OnDemandParams(Params):
    """The numbers of `ondemand`."""

    ceiling: float = Field(default=1.0, gt=0, le=1)
    """The most to pay for GPU and disk, as a share of the workload's max_price."""


class OnDemand:
    """Fill every empty slot with the on-demand offer whose useful hour is cheapest; start again what stopped."""

    params: ClassVar[type[Params]] = OnDemandParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a rent for each empty slot and a resume for each paused one."""
        if not isinstance(params, OnDemandParams):
            raise TypeError("ondemand runs on OnDemandParams")
        ranked = view.ranking(_ways(view, params))
        return [self._fill(slot, view, ranked) for slot in view.slots]

    def _fill(self, slot: SlotView, view: View, ranked: Iterator[Candidate]) -> Proposal:
        if slot.lease is not None:
            return _keep(slot)
        best = next(ranked, None)
        if best is None:
            code = "no_offer" if view.has_offers else "no_view"
            return Proposal(slot.slot, None, Reason(code, "no on-demand offer fits within the price"))
        options = (Option("chosen", best.reckoning.per_useful_hour, best.reckoning.terms()),)
        sentence = f"rent host {best.offer.host_id} on demand at {best.way.rate}"
        return Proposal(slot.slot, IntentKind.RENT, Reason("best_offer", sentence, options), candidate=best)


def _keep(slot: SlotView) -> Proposal:
    held = slot.lease
    if held is not None and held.state is LeaseState.PAUSED:
        return Proposal(slot.slot, IntentKind.RESUME, Reason("resume", "start it again where it stands"), lease=held)
    return Proposal(slot.slot, None, Reason("running", "runs on demand"))


def _ways(view: View, params: OnDemandParams) -> Pricing:
    def ways(candidate: Offer) -> Sequence[price.Way]:
        most = view.workload.max_price.scaled(params.ceiling) - candidate.disk_rate(view.workload.disk_gb)
        if candidate.ask is None or candidate.ask > most:
            return ()
        return (price.Way(Tenure.ON_DEMAND, candidate.ask),)

    return ways
