"""The rules of other clients of such a market, as strategies: our own code of published rules, each with its source.

All of them take the cheapest listed price per DLPerf, except `floor_reckoned`, which takes our own order of offers. Its
difference to ours is therefore due to bidding and recovery alone.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from agent.decide.pricing import bidding, useful_hour
from agent.decide.strategy import Candidate, Params, Proposal, SlotView, Tuned, View
from agent.domain import money
from agent.domain.market.offer import Offer
from agent.domain.market.tenure import Tenure
from agent.domain.money import UsdPerHour
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work.decision import Reason

PATIENCE = timedelta(minutes=2)
"""The time that a raised bid has to win the GPUs back before the next rung."""


class FixedParams(Params):
    """A baseline has no numbers to tune."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One bid for each offer: `over` times the floor, at most `cap` times the ask, or the ask if `over` is None."""

    max_price: UsdPerHour
    disk_gb: float
    over: float | None
    cap: float | None

    def __call__(self, candidate: Offer, /) -> Sequence[useful_hour.Way]:
        """Return the one way to rent the offer, or none if it is above the price."""
        rate = candidate.ask if self.over is None else self._bid(candidate)
        if rate is None or rate + candidate.disk_rate(self.disk_gb) > self.max_price:
            return ()
        return (useful_hour.Way(Tenure.ON_DEMAND if self.over is None else Tenure.INTERRUPTIBLE, rate),)

    def _bid(self, candidate: Offer) -> UsdPerHour | None:
        if candidate.floor is None or self.over is None:
            return None
        wanted = money.rounded_up(candidate.floor.scaled(self.over), bidding.BID_PLACES)
        if self.cap is None or candidate.ask is None:
            return wanted
        most = bidding.rounded(candidate.ask.scaled(self.cap))
        return None if most < candidate.floor else min(wanted, most)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Bid by one rule. After a loss, raise along `rungs` over the price to beat, then release and rent elsewhere."""

    params: ClassVar[type[Params]] = FixedParams
    over: float | None = 1.0
    cap: float | None = None
    rungs: tuple[float, ...] = ()
    is_reckoned: bool = False

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a rent for an empty slot, a raise or a release for a lost one."""
        del params
        work = view.workload
        ranked = view.ranking(Listed(work.max_price, work.disk_gb, self.over, self.cap))
        order = ranked if self.is_reckoned else iter(sorted(ranked, key=_listed_price(work.disk_gb)))
        return [self._decide(slot, view, order) for slot in view.slots]

    def _decide(self, slot: SlotView, view: View, order: Iterator[Candidate]) -> Proposal:
        lease = slot.lease
        if lease is None:
            best = next(order, None)
            if best is None:
                return Proposal(slot.slot, None, Reason("no_offer", "no listed price is within the workload's"))
            return Proposal(slot.slot, IntentKind.RENT, Reason("best_offer", "the cheapest listed"), candidate=best)
        if slot.down is None:
            return Proposal(slot.slot, None, Reason("running", "runs"))
        return self._climb(slot, lease, view) or Proposal(
            slot.slot, IntentKind.RELEASE, Reason("lost", "relaunch elsewhere"), lease=lease
        )

    def _climb(self, slot: SlotView, lease: Lease, view: View) -> Proposal | None:
        """Bid the next rung over the price that outbid the lease, if there is a rung below the cap."""
        if not self.rungs or slot.down is None or lease.tenure is not Tenure.INTERRUPTIBLE:
            return None
        if lease.bid_since is not None and lease.bid_since >= slot.down.since and view.now - lease.bid_since < PATIENCE:
            return Proposal(slot.slot, None, Reason("raised", "the raise may show yet"))
        beat = bidding.price_to_outbid(lease, slot.down.quotes)
        most = bidding.ceiling(view.workload.max_price, lease.disk_rate, lease.ask, self.cap or 1.0)
        bids = [] if beat is None else [money.rounded_up(beat.scaled(rung), bidding.BID_PLACES) for rung in self.rungs]
        following = next((bid for bid in bids if lease.gpu_rate < bid <= most), None)
        if following is None:
            return None
        return Proposal(slot.slot, IntentKind.REBID, Reason("raise_bid", "the next rung"), lease=lease, bid=following)


def _listed_price(disk_gb: float) -> Callable[[Candidate], tuple[float, str]]:
    """Return the order of listed prices per DLPerf, with disk. For equal prices the smaller offer id comes first."""

    def of(candidate: Candidate) -> tuple[float, str]:
        dollars = (candidate.way.rate + candidate.offer.disk_rate(disk_gb)).dollars
        return dollars / max(candidate.offer.dlperf, useful_hour.LEAST_DLPERF), candidate.offer.offer_id

    return of


@dataclass(frozen=True, slots=True)
class Rule:
    """A baseline with the state of its rule."""

    strategy: Fixed
    source: str = field(default="")


RULES: Mapping[str, Rule] = {
    "on_demand": Rule(Fixed(over=None), "the listed price, never outbid"),
    "floor_relaunch": Rule(
        Fixed(),
        "the lowest bid, and a new instance elsewhere when outbid: SkyPilot 0.14.1 (sky/provision/vast) and dstack "
        "0.22.5 (pull requests 4025 and 4036)",
    ),
    "floor_reckoned": Rule(Fixed(is_reckoned=True), "the same in our own order of offers"),
    "floor_plus_2": Rule(Fixed(over=1.02), "1.02 times the lowest bid: the first raise of VastSniper's ladder"),
    "capped_20": Rule(
        Fixed(over=1.2, cap=0.65),
        "1.2 times the lowest bid, at most 0.65 of on-demand: freeqaz/herdd bidpolicy.py at f8ce6ff",
    ),
    "ladder": Rule(
        Fixed(cap=0.9, rungs=(1.0, 1.02, 1.05)),
        "re-bids of 1.00, 1.02 and 1.05 times the price to beat, at most 0.9 of on-demand: VastSniper",
    ),
}


def tuned() -> dict[str, Tuned]:
    """Return the baselines, ready for an engine."""
    return {name: Tuned(name, rule.strategy, FixedParams(), "fixed") for name, rule in RULES.items()}
