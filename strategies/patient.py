"""One interruptible lease per slot: bid low, and after an interruption wait, raise or move by cost."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, ClassVar

from pydantic import Field

from agent.decide.moves import bid_decay, recovery, voluntary_move
from agent.decide.moves.auctions import notice_move, value_upkeep, waiting_bid
from agent.decide.pricing import bidding, offer_terms, useful_hour
from agent.decide.pricing.worth import net_value, work_value
from agent.decide.strategy import (
    AUTO,
    Auto,
    Candidate,
    Duration,
    Params,
    Proposal,
    Shortlist,
    SlotView,
    View,
    duration,
)
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Option, Reason


class PatientParams(Params):
    """The numbers of `patient`; patient.toml explains both ends of each."""

    unvalued: ClassVar[Mapping[str, float]] = {"idle_worth": 0.8, "on_demand_share": 0.6}

    headroom: float = Field(default=0.1, ge=0, le=4)
    """Bid at most this share of the floor above it."""
    ceiling: float = Field(default=0.9, gt=0, le=1)
    """Never bid more than this share of the same offer's ask."""
    raise_headroom: float = Field(default=0.05, ge=0, le=4)
    """To outbid a rival, bid this share of its price above it."""
    least_gain: float = Field(default=0.05, ge=0, le=1)
    """Raise or move only if that is cheaper than waiting by this share of the cost of waiting."""
    idle_worth: Annotated[float, Field(gt=0, le=1)] | Auto = AUTO
    """Price of an hour without work after a loss, as a share of the workload's value; "auto": all of it."""
    may_raise: bool = True
    """Whether a lost lease's bid may be raised."""
    may_move: bool = True
    """Whether a slot may leave a lost lease for another host."""
    on_demand_if_cheaper: bool = True
    """Whether to rent on demand if a useful hour on demand is cheaper."""
    on_demand_share: Annotated[float, Field(gt=0, le=1)] | Auto = AUTO
    """On-demand capacity may cost at most this share of the workload's `max_price`; "auto": what an hour is worth."""
    may_return: bool = True
    """Whether a slot may leave an on-demand lease for a cheaper offer."""
    return_after: Duration = duration("10m")
    """How long an on-demand lease runs before the slot may move away."""
    return_gain: float = Field(default=0.02, ge=0, le=1)
    """The move away from on-demand must save at least this share of the cost of staying."""
    leave_after: Duration = duration("10m")
    """How long a healthy interruptible lease runs before the slot may move to a cheaper offer."""
    leave_gain: float = Field(default=0.05, ge=0, le=1)
    """Such a move must save at least this share of the cost of staying."""
    lower_after: Duration = duration("45m")
    """Lower a raised bid after this long without an interruption."""
    lower_step: float = Field(default=0.5, ge=0, le=1)
    """Each step lowers the bid by this share of the distance to the host's floor plus headroom."""


class Patient:
    """Bid a little over the floor; wait while prices spike; pay more only if it costs less than waiting."""

    params: ClassVar[type[Params]] = PatientParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return a rent for an empty slot, a recovery for a lost lease, and sometimes a lower bid for a calm one."""
        if not isinstance(params, PatientParams):
            raise TypeError("patient runs on PatientParams")
        shortlist = Shortlist(_ranked(view, params))
        return [shortlist.used(self._decide(slot, view, shortlist, params)) for slot in view.slots]

    def _decide(self, slot: SlotView, view: View, shortlist: Shortlist, params: PatientParams) -> Proposal:
        lease = slot.lease
        if lease is None:
            return _fill(slot, view, shortlist, params)
        if slot.arriving is not None:
            return Proposal(slot.slot, None, Reason("moving", f"waits for host {slot.arriving.host_id} to be ready"))
        if following := value_upkeep.follow_value(slot, view, view.fastest):
            return following
        if slot.down is not None:
            here = useful_hour.contested_hazard(view.hosts.get(lease.host), view.market_hazard)
            others = _elsewhere(lease, view, shortlist, params)
            found = recovery.recover(slot, view.workload, others, here, _numbers(view, lease, params), view.now)
            return value_upkeep.while_down(found, slot, view, view.fastest)
        if noticed := _under_notice(slot, lease, view, shortlist, params):
            return noticed
        if recovery.ends_soon(lease, view.now):
            leaving = recovery.leave_ending_host(slot, view.workload, shortlist.best, view.now)
            if leaving is not None:
                return leaving
        return _go_back(slot, view, shortlist, params) or _calm(slot, view, lease, params)


def _ranked(view: View, params: PatientParams) -> Iterator[Candidate]:
    """Yield bids over the floor within the ceiling, and asks if they are allowed, best first."""
    bids, asks = _bids(view, params), _asks(view, params) if params.on_demand_if_cheaper else None
    if asks is None or view.workload.value_per_hour is None:
        return net_value.of_view(view, offer_terms.Ways(bids, asks))
    return net_value.of_view(view, bids, asks)


def _bids(view: View, params: PatientParams) -> offer_terms.Bids:
    work = view.workload
    bids = offer_terms.Bids(work.prices, work.disk_gb, params.headroom, params.ceiling, view.fastest, view.rivals)
    return bids.under(view.limit_markets, work.value_per_hour)


def _asks(view: View, params: PatientParams) -> offer_terms.Asks:
    work = view.workload
    share = work_value.share(params.on_demand_share, work, params.unvalued["on_demand_share"])
    return offer_terms.Asks(work.prices.scaled(share), work.disk_gb, view.fastest)


def _under_notice(
    slot: SlotView, lease: Lease, view: View, shortlist: Shortlist, params: PatientParams
) -> Proposal | None:
    if lease.notice_at is None:
        return None
    here = useful_hour.contested_hazard(view.hosts.get(lease.host), view.market_hazard)
    others = _elsewhere(lease, view, shortlist, params)
    return notice_move.propose(slot, view.workload, others, here, _numbers(view, lease, params))


def _elsewhere(lease: Lease, view: View, shortlist: Shortlist, params: PatientParams) -> list[Candidate]:
    """Return the best offer on another host and, if that is a bid, also the best on-demand offer; with a value both.

    With several slots the second search could name a host that the first has given to another slot.
    """
    best = shortlist.best if params.may_move else None
    if lease.bid_limit is not None and params.may_move:
        # A pool that another slot of this plan goes to has room for this one too.
        best = notice_move.elsewhere(lease, _ranked(view, params))
    if best is None:
        return []
    is_ask = best.way.tenure is Tenure.ON_DEMAND
    is_only = is_ask and view.workload.value_per_hour is None
    if is_only or not params.on_demand_if_cheaper or len(view.slots) > 1:
        return [best]
    others = net_value.of_view(view, _bids(view, params) if is_ask else _asks(view, params))
    return [best, *islice((each for each in others if each.offer.host != best.offer.host), 1)]


def _fill(slot: SlotView, view: View, shortlist: Shortlist, params: PatientParams) -> Proposal:
    best = shortlist.best
    if best is None and (waiting := waiting_bid.propose(slot, view, _bids(view, params))):
        return waiting
    if best is None:
        code = "no_offer" if view.has_offers else "no_view"
        sentence = (
            "no offer fits within the price" if view.has_offers else "no search in the last two minutes found an offer"
        )
        return Proposal(slot.slot, None, Reason(code, sentence))
    offer, way = best.offer, best.way
    terms = "on demand" if way.tenure is Tenure.ON_DEMAND else f"bid over a floor of {offer.floor}"
    terms = way.under_limit.strip() or terms
    sentence = (
        f"rent {offer.gpus}x {offer.gpu} on host {offer.host_id} at {way.rate} {terms}: "
        f"{best.reckoning.score:.0f} DLPerf h/$, {best.reckoning.per_useful_hour:.3f} $ per useful hour"
    )
    options = (Option("chosen", best.reckoning.per_useful_hour, best.reckoning.terms()),)
    return Proposal(slot.slot, IntentKind.RENT, Reason("best_offer", sentence, options), candidate=best)


def _numbers(view: View, lease: Lease, params: PatientParams) -> recovery.RecoveryParams:
    most = view.workload.prices.at_speed(lease.gpu, offer_terms.speed(lease.dlperf, view.fastest))
    idle = 1.0 if lease.bid_limit is not None else _idle_share(view, params)
    return recovery.RecoveryParams(
        ceiling=bidding.ceiling(most, lease.disk_rate, lease.ask, params.ceiling),
        raise_headroom=params.raise_headroom,
        least_gain=params.least_gain,
        may_move=params.may_move,
        may_raise=params.may_raise,
        worth=view.workload.value_of(lease.gpu).scaled(idle),
        fastest=view.fastest,
        most_speed=1.0 if view.workload.value_per_hour is None or view.fastest == 0 else math.inf,
        rivals=view.rivals,
        starts_by_itself=view.starts_by_itself(lease),
    )


def _idle_share(view: View, params: PatientParams) -> float:
    return work_value.share(params.idle_worth, view.workload, params.unvalued["idle_worth"])


def _go_back(slot: SlotView, view: View, shortlist: Shortlist, params: PatientParams) -> Proposal | None:
    """Return the move of a healthy lease to a cheaper offer, rarely: it costs a restore and may end on a worse host."""
    lease = slot.lease
    if lease is None or lease.state is not LeaseState.RUNNING or not view.has_offers:
        return None
    is_bid = lease.tenure is Tenure.INTERRUPTIBLE
    after, gain = (params.leave_after, params.leave_gain) if is_bid else (params.return_after, params.return_gain)
    if view.now - lease.state_since < after or not (is_bid or params.may_return):
        return None
    here = useful_hour.contested_hazard(view.hosts.get(lease.host), view.market_hazard)
    return voluntary_move.move_to_cheaper(
        slot, view.workload, shortlist.best, gain, market_loss_rate=here, fastest=view.fastest
    )


def _calm(slot: SlotView, view: View, lease: Lease, params: PatientParams) -> Proposal:
    numbers = bid_decay.BidDecayParams(params.headroom, params.lower_step, params.lower_after)
    return bid_decay.lower(slot, lease, numbers, view.now)
