"""On demand only: it pays the listed price and is never outbid. Every other strategy is compared with it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from agent.decide.moves import recovery
from agent.decide.pricing import useful_hour
from agent.decide.strategy import Candidate, Params, Proposal, Shortlist, SlotView, View
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Option, Reason
from agent.domain.work.workload import MaxPrice


class OnDemandParams(Params):
    """The numbers of `ondemand`."""

    ceiling: float = Field(default=1.0, gt=0, le=1)
    """The most to pay for GPU and disk, as a share of the workload's max_price."""


class OnDemand:
    """Fill every empty slot with the on-demand offer whose useful hour is cheapest; start stopped leases again."""

    params: ClassVar[type[Params]] = OnDemandParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a rent for each empty slot and a resume for each paused one."""
        if not isinstance(params, OnDemandParams):
            raise TypeError("ondemand runs on OnDemandParams")
        work = view.workload
        shortlist = Shortlist(view.ranking(_Ways(work.prices.scaled(params.ceiling), work.disk_gb)))
        return [shortlist.used(self._fill(slot, view, shortlist)) for slot in view.slots]

    def _fill(self, slot: SlotView, view: View, shortlist: Shortlist) -> Proposal:
        if slot.arriving is not None:
            # A start of the old lease would bill beside the new one, which may load for a long time.
            return Proposal(slot.slot, None, Reason("moving", f"waits for host {slot.arriving.host_id} to be ready"))
        lease = slot.lease
        if lease is not None and recovery.ends_soon(lease, view.now):
            leaving = recovery.leave_ending_host(slot, view.workload, shortlist.best, view.now)
            return leaving or _keep(slot, lease, view, shortlist)
        if lease is not None:
            return _keep(slot, lease, view, shortlist)
        best = shortlist.best
        if best is None:
            code = "no_offer" if view.has_offers else "no_view"
            return Proposal(slot.slot, None, Reason(code, "no on-demand offer fits within the price"))
        options = (Option("chosen", best.reckoning.per_useful_hour, best.reckoning.terms()),)
        sentence = f"rent host {best.offer.host_id} on demand at {best.way.rate}"
        return Proposal(slot.slot, IntentKind.RENT, Reason("best_offer", sentence, options), candidate=best)


def _keep(slot: SlotView, lease: Lease, view: View, shortlist: Shortlist) -> Proposal:
    left = recovery.cooling_off(slot, view.now)
    if left is not None:
        return left
    if lease.state is LeaseState.PAUSED:
        if slot.is_start_refused:
            return _elsewhere(slot, view, shortlist.best)
        return Proposal(slot.slot, IntentKind.RESUME, Reason("resume", "start it again on its host"), lease=lease)
    return Proposal(slot.slot, None, Reason(lease.state.value, f"{lease.state.value} on demand"))


def _elsewhere(slot: SlotView, view: View, best: Candidate | None) -> Proposal:
    """Return the move of a lease whose start its market refused; the old lease is kept until the new one runs."""
    refused = "the market refused its start a moment ago"
    if best is None or not recovery.may_go(slot, view.workload, best):
        return Proposal(slot.slot, None, Reason("order_refused", f"{refused}: it is tried again later"))
    options = (Option("move", best.reckoning.per_useful_hour, best.reckoning.terms()),)
    sentence = f"{refused}: move to host {best.offer.host_id} at {best.way.rate} on demand"
    return recovery.move_to(slot, best, Reason("move", sentence, options))


@dataclass(frozen=True, slots=True)
class _Ways:
    """The way to pay for an offer: a value, so that workloads with equal ways share one search."""

    most: MaxPrice
    disk_gb: float

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the ask if GPU and disk are within the price."""
        ask = candidate.ask
        if ask is None or ask + candidate.disk_rate(self.disk_gb) > self.most.of(candidate.gpu):
            return ()
        return (useful_hour.Way(Tenure.ON_DEMAND, ask),)
