"""The strategy to beat: bid exactly the floor, and when it is lost, release at once and bid the floor elsewhere.

It is what a client does that knows a lowest bid and nothing else, so it is kept out of what ships. It sees the same
offers in the same order as every other strategy, never pays on demand, never waits and never raises a bid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from agent.decide import bidding, price
from agent.decide.strategy import Candidate, Params, Proposal, SlotView, Tuned, View
from agent.domain.decision import Reason
from agent.domain.intent import IntentKind
from agent.domain.money import UsdPerHour
from agent.domain.offer import Offer
from agent.domain.tenure import Tenure


class FloorParams(Params):
    """It has no numbers."""


@dataclass(frozen=True, slots=True)
class _Ways:
    max_price: UsdPerHour
    disk_gb: float

    def __call__(self, candidate: Offer, /) -> Sequence[price.Way]:
        if candidate.floor is None:
            return ()
        bid = money_up(candidate.floor)
        if bid + candidate.disk_rate(self.disk_gb) > self.max_price:
            return ()
        return (price.Way(Tenure.INTERRUPTIBLE, bid),)


def money_up(floor: UsdPerHour) -> UsdPerHour:
    """Return the least bid that is not below the floor."""
    step = 10 ** (6 - bidding.BID_PLACES)
    return UsdPerHour(-(-floor.micros // step) * step)


class Floor:
    """Bid the floor; lost means released and rented elsewhere."""

    params: ClassVar[type[Params]] = FloorParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a rent for an empty slot and a release for a lost one."""
        del params
        ranked = view.ranking(_Ways(view.workload.max_price, view.workload.disk_gb))
        return [self._decide(slot, ranked) for slot in view.slots]

    def _decide(self, slot: SlotView, ranked: Iterator[Candidate]) -> Proposal:
        if slot.lease is None:
            best = next(ranked, None)
            if best is None:
                return Proposal(slot.slot, None, Reason("no_offer", "no floor is within the price"))
            return Proposal(slot.slot, IntentKind.RENT, Reason("best_offer", "bid the floor"), candidate=best)
        if slot.down is not None:
            return Proposal(slot.slot, IntentKind.RELEASE, Reason("lost", "go elsewhere"), lease=slot.lease)
        return Proposal(slot.slot, None, Reason("running", "runs"))


def tuned() -> Tuned:
    """Return the strategy, ready for a rehearsal."""
    return Tuned("floor", Floor(), FloorParams(), "floor")
