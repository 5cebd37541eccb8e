"""Slots spread over hosts, owners and markets; on demand by rule when interruptible capacity fails, and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from agent.decide.deadline import deadline_markets, multi_pool_policy, on_demand_fallback
from agent.decide.moves import bid_decay, recovery, voluntary_move
from agent.decide.pricing import bidding, offer_terms, useful_hour
from agent.decide.service import hedging, service_slots
from agent.decide.strategy import Candidate, Duration, Params, Proposal, SlotView, View, duration
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import SPARE, WAITS, Option, Reason
from agent.domain.work.workload import WorkloadKind

LOOK_AT = 64
"""So many offers are looked at for one that fits the shares: more slots than that in one workload are rare."""
CALM_SHARE = 0.5
"""The way back opens when the rate of losses is below this share of the bound: at the bound itself it would flap."""


def _within_a_day(value: timedelta) -> timedelta:
    if value > timedelta(days=1):
        raise ValueError('interruptions are remembered for a day; write at most "24h"')
    return value


def _window(value: timedelta) -> timedelta:
    if value < timedelta(minutes=5):
        raise ValueError('a rate over less than five minutes is chance; write at least "5m"')
    return _within_a_day(value)


class HedgedParams(Params):
    """The numbers of `hedged`; hedged.toml says of each what it does at both ends."""

    share_of_owner: float = Field(default=0.5, gt=0, le=1)
    """At most this share of the slots on hosts of one owner, one at least."""
    share_of_host: float = Field(default=1.0, gt=0, le=1)
    """At most this share of the slots on one host or pool of hosts, one at least."""
    share_of_market: float = Field(default=0.7, gt=0, le=1)
    """At most this share of the slots on one market, one at least, where there are several."""
    may_crowd: bool = False
    """Whether a slot may be placed outside of the shares rather than stay empty."""
    headroom: float = Field(default=0.1, ge=0, le=4)
    """Bid above the floor by up to this share of it."""
    ceiling: float = Field(default=0.9, gt=0, le=1)
    """Never bid more than this share of the same slice's ask."""
    raise_headroom: float = Field(default=0.05, ge=0, le=4)
    """When a rival must be beaten, bid above its price by this share of it."""
    least_gain: float = Field(default=0.05, ge=0, le=1)
    """Leave the cheapest way of doing nothing only for a gain of at least this share of its cost."""
    idle_worth: float = Field(default=0.6, gt=0, le=1)
    """What an hour without work is worth after a loss, as a share of the workload's `max_price`."""
    on_demand_share: float = Field(default=0.6, gt=0, le=1)
    """On-demand may cost at most this share of the workload's `max_price`, but for a deadline or warm slots."""
    leave_after: Duration = duration("10m")
    """How long an interruptible lease runs before it may be left for a cheaper offer."""
    leave_gain: float = Field(default=0.05, ge=0, le=1)
    """What share of the cost of staying such a move must gain."""
    fallback_after: Duration = duration("20m")
    """Fall back to on-demand when a slot has been down or empty for so long."""
    most_losses: float = Field(default=2.0, gt=0, le=100)
    """Fall back at once while the market takes leases so often, per slot and hour."""
    pool_window: Annotated[Duration, AfterValidator(_window)] = duration("3h")
    """How far back interruptions count for `most_losses`."""
    return_after: Duration = duration("1h")
    """How long an on-demand lease runs before it may be left."""
    return_gain: float = Field(default=0.1, ge=0, le=1)
    """What share of the cost of staying the way back must gain."""
    return_horizon_hours: float = Field(default=6.0, ge=0.5, le=168)
    """Over how many hours the way back is reckoned against staying."""
    host_rest: Annotated[Duration, AfterValidator(_within_a_day)] = duration("3h")
    """A host that interrupted the workload is not returned to from on-demand for so long."""
    keep_warm: bool = False
    """For a service: weigh in dollars where its slots are, how many spare ones are held, and when on demand."""
    short_worth: float = Field(default=24.0, ge=0, le=10_000)
    """What an hour with a slot too few is worth, in hours of all slots on demand."""
    spare_slots: int = Field(default=1, ge=0, le=16)
    """So many of the workload's slots are spare: held only while they pay."""
    cold_start: Annotated[Duration, AfterValidator(_within_a_day)] = duration("2m")
    """How long it takes from a loss until a replacement serves."""
    weigh_markets: bool = True
    """Work with a deadline on several markets: hold what finishing in time is expected to cost least on."""
    reserve: Duration = duration("10m")
    """With `weigh_markets`: time kept free before the last instant."""
    start_delay: Duration = duration("20m")
    """With `weigh_markets`: time kept free for a start of on-demand."""
    weather_hours: float = Field(default=24.0, ge=1, le=1000)
    """With `weigh_markets`: how long a market's weather is reckoned to last from now on."""
    wait_gain: float = Field(default=0.002, ge=0, le=1)
    """With `weigh_markets`: waiting must gain more than so many hours of on-demand."""
    near_price: float = Field(default=0.1, ge=0, le=1)
    """With `weigh_markets`: how much dearer a market may be and still be like its neighbour, where a move is free."""
    lower_after: Duration = duration("45m")
    """After this long without trouble, lower a raised bid."""
    lower_step: float = Field(default=0.5, ge=0, le=1)
    """Each time by this share of the way down to the host's floor plus headroom."""

    @property
    def weighing(self) -> multi_pool_policy.Numbers:
        """The numbers of the choice between markets."""
        return multi_pool_policy.Numbers(self.wait_gain, self.near_price, self.weather_hours)


@dataclass(frozen=True, slots=True)
class _Grounds:
    """What all slots of one view share: the numbers, both rankings, the spread, and how the pool does."""

    view: View
    params: HedgedParams
    pricing: offer_terms.Bids
    bids: Sequence[Candidate]
    asks: Sequence[Candidate]
    spread: hedging.Spread
    loss_rate: float
    kept: service_slots.Keeping | None = None

    @property
    def is_bad(self) -> bool:
        """Whether the market takes leases as often as the bound."""
        return self.loss_rate >= self.params.most_losses

    def bid(self, slot: SlotView) -> Candidate | None:
        """Return the best interruptible candidate for a slot."""
        return self.spread.first(slot.slot, self.bids, may_crowd=self.params.may_crowd)

    def fallback(self, slot: SlotView) -> Candidate | None:
        """Return the best on-demand candidate that a slot may fall back to."""
        work, asks = self.view.workload, self.asks
        most = work.max_price.scaled(self.params.on_demand_share)
        within = [ask for ask in asks if ask.way.rate + ask.offer.disk_rate(work.disk_gb) <= most]
        return self.spread.first(slot.slot, within, may_crowd=self.params.may_crowd)

    def ask(self, slot: SlotView) -> Candidate | None:
        """Return the best on-demand candidate for a slot."""
        return self.spread.first(slot.slot, self.asks, may_crowd=self.params.may_crowd)


class Hedged:
    """Spread; fall back when a slot is down too long or the pool too rough; return when that has shown to pay."""

    params: ClassVar[type[Params]] = HedgedParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return at most one move for each slot, and none for a slot whose move is under way."""
        if not isinstance(params, HedgedParams):
            raise TypeError("hedged runs on HedgedParams")
        work = view.workload
        bidding_ways = offer_terms.Bids(
            work.max_price, work.disk_gb, params.headroom, params.ceiling, view.fastest, view.rivals
        )
        bids = tuple(islice(view.ranking(bidding_ways), LOOK_AT))
        asks = tuple(islice(view.ranking(offer_terms.Asks(work.max_price, work.disk_gb, view.fastest)), LOOK_AT))
        is_kept = params.keep_warm and work.kind is WorkloadKind.SERVICE and view.has_offers
        numbers = service_slots.Numbers(params.short_worth, params.spare_slots, params.cold_start, params.return_gain)
        shares = hedging.Shares(params.share_of_host, params.share_of_owner, params.share_of_market)
        grounds = _Grounds(
            view=view,
            params=params,
            pricing=bidding_ways,
            bids=bids,
            asks=asks,
            spread=hedging.Spread(view, shares),
            loss_rate=hedging.loss_rate(view, params.pool_window),
            kept=service_slots.keep(view, numbers, bids, asks) if is_kept else None,
        )
        return [_placed(_fare(slot, grounds) or _decide(slot, grounds), grounds.spread) for slot in view.slots]


def _placed(proposal: Proposal, spread: hedging.Spread) -> Proposal:
    if proposal.candidate is not None:
        spread.put(proposal.slot, proposal.candidate)
    return proposal


def _decide(slot: SlotView, grounds: _Grounds) -> Proposal:
    held, view = slot.lease, grounds.view
    if slot.arriving is not None:
        return Proposal(slot.slot, None, Reason("moving", f"waits for host {slot.arriving.host_id} to be ready"))
    if grounds.kept is not None:
        kept = _keep(slot, grounds, grounds.kept)
        if kept is not None:
            return kept
    if held is None:
        return _fill(slot, grounds)
    if slot.down is not None:
        return (None if grounds.kept else _fall_back(slot, held, grounds)) or _recover(slot, held, grounds)
    if recovery.ends_soon(held, view.now):
        leaving = recovery.leave(slot, view.workload, grounds.bid(slot) or grounds.ask(slot), view.now)
        if leaving is not None:
            return leaving
    return (None if grounds.kept else _go_back(slot, held, grounds)) or _calm(slot, held, grounds)


def _fare(slot: SlotView, grounds: _Grounds) -> Proposal | None:
    """Hold what finishing a deadline on several markets is expected to cost least on; None where that is not asked."""
    params, view, held = grounds.params, grounds.view, slot.lease
    numbers = on_demand_fallback.Numbers(params.reserve, params.start_delay)
    is_asked = params.weigh_markets and slot.arriving is None and len(view.workload.places) == 1
    # Work whose only checkpoint is on a disk has no choice of markets any more.
    is_asked = is_asked and (held is None or recovery.may_leave(held, view.workload))
    bids = view.ranking(grounds.pricing) if is_asked else ()
    made = deadline_markets.fare(view, slot, numbers, bids, grounds.asks, params.weighing) if is_asked else None
    if made is None:
        return None
    if held is not None and recovery.ends_soon(held, view.now):
        best = made.candidate or grounds.bid(slot) or grounds.ask(slot)
        leaving = recovery.leave(slot, view.workload, best, view.now)
        if leaving is not None:
            return deadline_markets.told(leaving, made)
    if deadline_markets.holds(slot, made):
        return None if held is None else deadline_markets.told(_calm(slot, held, grounds), made)
    if made.tenure is None:
        return _wait(slot, made, grounds)
    to = made.candidate
    if to is None or not recovery.may_go(slot, view.workload, to):
        return (
            deadline_markets.told(_calm(slot, held, grounds), made) if held is not None and slot.down is None else None
        )
    place = f"host {to.offer.host_id} of {to.offer.market} at {to.way.rate} {to.way.tenure.value}"
    sentence = f"hold {place}; {made.sentence}"
    code = "fallback" if made.tenure is Tenure.ON_DEMAND else "best_offer"
    return recovery.go(slot, to, Reason(code, sentence, made.options))


def _wait(slot: SlotView, made: deadline_markets.Faring, grounds: _Grounds) -> Proposal:
    """Hold nothing for now; what runs is let go for that only as often as for a cheaper offer."""
    held, why = slot.lease, Reason(WAITS, made.sentence, made.options)
    if held is None or slot.down is not None:
        return Proposal(slot.slot, None, why)
    is_kept = held.state is not LeaseState.RUNNING or slot.runs >= voluntary_move.MOST_LEAVES
    if is_kept:
        return deadline_markets.told(_calm(slot, held, grounds), made)
    return Proposal(slot.slot, IntentKind.RELEASE, why, lease=held)


def _keep(slot: SlotView, grounds: _Grounds, kept: service_slots.Keeping) -> Proposal | None:
    """Return what keeping enough slots warm asks of one; None leaves a lease to what is done with any."""
    held = slot.lease
    if held is None or slot.down is not None:
        # What ended by itself or by hand would end so elsewhere too: recovery lets it cool off where it stands.
        is_left = held is not None and held.interrupted_by in recovery.NOT_OF_THE_MARKET
        return None if is_left else _replace(slot, grounds, kept)
    if kept.stands(held) or not recovery.may_leave(held, grounds.view.workload):
        return None
    if kept.may_spare(held):
        kept.surplus -= 1
        sentence = f"{kept.running} others run, and a slot above {kept.needed} saves less than it costs"
        return Proposal(slot.slot, IntentKind.RELEASE, Reason(SPARE, sentence), lease=held)
    return _elsewhere(slot, held, grounds, kept)


def _replace(slot: SlotView, grounds: _Grounds, kept: service_slots.Keeping) -> Proposal | None:
    """Fill a slot that holds nothing running, as far as the choice lacks any."""
    to = _place_of(slot, grounds, kept) if kept.lacking else None
    if to is not None:
        kept.lacking -= 1
        return recovery.go(slot, to, service_slots.chosen(to, kept))
    if kept.lacking:
        why = Reason("no_offer", "nothing fits that is worth its price")
        return Proposal(slot.slot, None, why) if slot.lease is None else None
    why = Reason(SPARE, f"a slot above {kept.needed} saves less than it costs")
    is_left = slot.lease is not None and recovery.may_leave(slot.lease, grounds.view.workload)
    return Proposal(slot.slot, IntentKind.RELEASE if is_left else None, why, lease=slot.lease if is_left else None)


def _elsewhere(slot: SlotView, held: Lease, grounds: _Grounds, kept: service_slots.Keeping) -> Proposal | None:
    """Move what runs where the choice would rather have it: to on-demand at once, to a bid where that pays."""
    params, view = grounds.params, grounds.view
    to = _place_of(slot, grounds, kept)
    if to is None or (to.way.tenure is Tenure.ON_DEMAND and held.tenure is Tenure.ON_DEMAND):
        return None
    if to.way.tenure is Tenure.ON_DEMAND:
        return recovery.go(slot, to, service_slots.chosen(to, kept))
    here = useful_hour.contested_hazard(view.hosts.get(held.host), view.market_hazard)
    return voluntary_move.go_back(slot, view.workload, to, params.return_gain, params.return_horizon_hours, here)


def _place_of(slot: SlotView, grounds: _Grounds, kept: service_slots.Keeping) -> Candidate | None:
    """Take the next place of the choice that this slot may go to, interruptible ones first."""
    params, work = grounds.params, grounds.view.workload
    for spot in kept.spots:
        fits = grounds.spread.first(slot.slot, [spot], may_crowd=params.may_crowd) is not None
        if fits and recovery.may_go(slot, work, spot):
            kept.spots.remove(spot)
            return spot
    ask = grounds.ask(slot) if kept.on_demand else None
    if ask is None or not recovery.may_go(slot, work, ask):
        return None
    kept.on_demand -= 1
    return ask


def _fill(slot: SlotView, grounds: _Grounds) -> Proposal:
    """Rent where it is cheapest within the shares; on demand once the slot has been empty too long."""
    why = _why_fall_back(slot, grounds)
    bid, ask = grounds.bid(slot), grounds.fallback(slot)
    best = (ask or bid) if why else bid
    if best is None:
        return _nothing(slot, grounds, ask)
    offer, way = best.offer, best.way
    is_fallback = bool(why) and way.tenure is Tenure.ON_DEMAND
    sentence = f"rent {offer.gpus}x {offer.gpu} on host {offer.host_id} of {offer.market} at {way.rate} "
    sentence += f"on demand: {why}" if is_fallback else way.tenure.value
    sentence += f"; {best.reckoning.per_useful_hour:.3f} $ per useful hour"
    options = (Option("chosen", best.reckoning.per_useful_hour, best.reckoning.terms()),)
    reason = Reason("fallback" if is_fallback else "best_offer", sentence, options)
    return Proposal(slot.slot, IntentKind.RENT, reason, candidate=best)


def _nothing(slot: SlotView, grounds: _Grounds, ask: Candidate | None) -> Proposal:
    if not grounds.view.has_offers:
        return Proposal(slot.slot, None, Reason("no_view", "no market has been asked lately"))
    if ask is None:
        within = "" if grounds.params.may_crowd else " within the shares of owners and markets"
        return Proposal(slot.slot, None, Reason("no_offer", f"no offer fits within the price{within}"))
    sentence = f"no bid fits; falls back to on-demand after {grounds.params.fallback_after} without a lease"
    return Proposal(slot.slot, None, Reason("waits_for_fallback", sentence))


def _why_fall_back(slot: SlotView, grounds: _Grounds) -> str:
    """Return why a slot without running capacity should go on demand now, or nothing."""
    params, view = grounds.params, grounds.view
    if grounds.is_bad:
        return f"the market took {grounds.loss_rate:.2f} leases per slot and hour over {params.pool_window}"
    since = slot.down.since if slot.down is not None else slot.empty_since
    if since is not None and view.now - since >= params.fallback_after:
        return f"down since {since:%H:%M} UTC, longer than {params.fallback_after}"
    return ""


def _fall_back(slot: SlotView, held: Lease, grounds: _Grounds) -> Proposal | None:
    """Leave a lost interruptible lease for on-demand by rule; what ended by itself or by hand is left to recovery."""
    why = _why_fall_back(slot, grounds)
    is_lost = held.tenure is Tenure.INTERRUPTIBLE and held.interrupted_by not in {None, *recovery.NOT_OF_THE_MARKET}
    ask = grounds.fallback(slot) if why and is_lost else None
    if ask is None or not recovery.may_go(slot, grounds.view.workload, ask):
        return None
    options = (Option("on_demand", ask.reckoning.per_useful_hour, ask.reckoning.terms()),)
    sentence = f"fall back to host {ask.offer.host_id} of {ask.offer.market} at {ask.way.rate} on demand: {why}"
    return recovery.go(slot, ask, Reason("fallback", sentence, options))


def _recover(slot: SlotView, held: Lease, grounds: _Grounds) -> Proposal:
    view, params = grounds.view, grounds.params
    best = grounds.bid(slot)
    numbers = recovery.Numbers(
        ceiling=bidding.ceiling(view.workload.max_price, held.disk_rate, held.ask, params.ceiling),
        raise_headroom=params.raise_headroom,
        least_gain=params.least_gain,
        may_move=True,
        may_raise=True,
        worth=view.workload.max_price.scaled(params.idle_worth),
        fastest=view.fastest,
        rivals=view.rivals,
    )
    here = useful_hour.contested_hazard(view.hosts.get(held.host), view.market_hazard)
    return recovery.recover(slot, view.workload, [] if best is None else [best], here, numbers, view.now)


def _go_back(slot: SlotView, held: Lease, grounds: _Grounds) -> Proposal | None:
    """Leave on-demand only after its dwell, in a calm pool, for a host that did not just interrupt us, at a gain."""
    params, view = grounds.params, grounds.view
    if held.state is not LeaseState.RUNNING:
        return None
    if held.tenure is Tenure.INTERRUPTIBLE:
        return _leave(slot, held, grounds)
    is_settled = view.now - held.state_since >= params.return_after
    if not is_settled or grounds.loss_rate >= CALM_SHARE * params.most_losses:
        return None
    resting = hedging.lost_hosts(view, params.host_rest)
    rested = [candidate for candidate in grounds.bids if candidate.offer.host not in resting]
    best = grounds.spread.first(slot.slot, rested, may_crowd=False)
    gain, hours = params.return_gain, params.return_horizon_hours
    return voluntary_move.go_back(slot, view.workload, best, gain, hours, is_by_speed=view.fastest > 0)


def _leave(slot: SlotView, held: Lease, grounds: _Grounds) -> Proposal | None:
    """Leave a healthy interruptible lease after its dwell for a cheaper offer."""
    params, view = grounds.params, grounds.view
    if not view.has_offers or view.now - held.state_since < params.leave_after:
        return None
    here = useful_hour.contested_hazard(view.hosts.get(held.host), view.market_hazard)
    best, hours = grounds.bid(slot), params.return_horizon_hours
    return voluntary_move.go_back(
        slot, view.workload, best, params.leave_gain, hours, here, is_by_speed=view.fastest > 0
    )


def _calm(slot: SlotView, held: Lease, grounds: _Grounds) -> Proposal:
    params = grounds.params
    numbers = bid_decay.Numbers(params.headroom, params.lower_step, params.lower_after)
    return bid_decay.lower(slot, held, numbers, grounds.view.now)
