"""Slots at the cheapest offers within the shares; on demand while interruptible capacity fails, then back.

Invariants:
1. A slot falls back only after `fallback_after` without running capacity, or while the market takes leases too often.
2. A slot moves back only in a calm market, and only to a host that did not interrupt the workload lately.
"""

from agent.decide.moves import recovery, voluntary_move
from agent.decide.moves.auctions import waiting_bid
from agent.decide.service import hedging
from agent.decide.strategy import NEVER, Candidate, Proposal, SlotView
from agent.domain import span_text
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Option, Reason
from strategies.hedged_rules import upkeep
from strategies.hedged_rules.grounds import Grounds

CALM_SHARE = 0.5
"""Slots move back when the rate of losses is below this share of `most_losses`; at the bound itself they would flap."""


def propose(slot: SlotView, grounds: Grounds) -> Proposal:
    """Return the proposal for a slot."""
    lease = slot.lease
    if lease is None:
        return _fill(slot, grounds)
    if slot.down is not None:
        return _fall_back(slot, lease, grounds) or upkeep.recover(slot, lease, grounds)
    leaving = upkeep.leave_ending(slot, lease, grounds)
    return leaving or _go_elsewhere(slot, lease, grounds) or upkeep.calm(slot, lease, grounds)


def _fill(slot: SlotView, grounds: Grounds) -> Proposal:
    """Return the rent of the cheapest offer within the shares, on demand after too long without a lease, or a hold."""
    why = _why_fall_back(slot, grounds)
    bid, ask = grounds.bid(slot), grounds.fallback(slot)
    best = grounds.best(slot) if grounds.is_by_value else (ask or bid) if why else bid
    if best is None:
        return waiting_bid.propose(slot, grounds.view, grounds.pricing) or _nothing(slot, grounds, ask)
    offer, way = best.offer, best.way
    is_fallback = bool(why) and way.tenure is Tenure.ON_DEMAND
    sentence = f"rent {offer.gpus}x {offer.gpu} on host {offer.host_id} of {offer.market} at {way.rate} "
    sentence += f"on demand: {why}" if is_fallback else way.tenure.value + way.under_limit
    sentence += f"; {best.reckoning.per_useful_hour:.3f} $ per useful hour"
    options = (Option("chosen", best.reckoning.per_useful_hour, best.reckoning.terms()),)
    reason = Reason("fallback" if is_fallback else "best_offer", sentence, options)
    return Proposal(slot.slot, IntentKind.RENT, reason, candidate=best)


def _nothing(slot: SlotView, grounds: Grounds, ask: Candidate | None) -> Proposal:
    if not grounds.view.has_offers:
        return Proposal(slot.slot, None, Reason("no_view", "no search in the last two minutes found an offer"))
    if ask is None:
        within = "" if grounds.params.may_crowd else " and the shares of owners and markets"
        return Proposal(slot.slot, None, Reason("no_offer", f"no offer fits within the price{within}"))
    after = grounds.params.fallback_after
    falls_back = f"falls back to on-demand after {span_text.of(after)} without a lease"
    sentence = f"no bid fits; {'`fallback_after` is never' if after == NEVER else falls_back}"
    return Proposal(slot.slot, None, Reason("waits_for_fallback", sentence))


def _why_fall_back(slot: SlotView, grounds: Grounds) -> str:
    """Return why a slot without running capacity should move to on-demand now, or nothing."""
    params, view = grounds.params, grounds.view
    if grounds.is_by_value:
        return ""
    if grounds.is_bad:
        return (
            f"the market took {grounds.loss_rate:.2f} leases per slot and hour over {span_text.of(params.pool_window)}"
        )
    since = slot.down.since if slot.down is not None else slot.empty_since
    if since is not None and view.now - since >= params.fallback_after:
        return f"down since {since:%H:%M} UTC, longer than {span_text.of(params.fallback_after)}"
    return ""


def _fall_back(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal | None:
    """Return the rule's move of a lost lease to on-demand; None for one that ended by itself or by a person's order."""
    why = _why_fall_back(slot, grounds)
    is_lost = lease.tenure is Tenure.INTERRUPTIBLE and lease.interrupted_by not in {None, *recovery.NOT_OF_THE_MARKET}
    is_lost = is_lost or (lease.is_open_bid and not lease.has_run)
    ask = grounds.fallback(slot) if why and is_lost else None
    if ask is None or not recovery.may_go(slot, grounds.view.workload, ask):
        return None
    options = (Option("on_demand", ask.reckoning.per_useful_hour, ask.reckoning.terms()),)
    sentence = f"fall back to host {ask.offer.host_id} of {ask.offer.market} at {ask.way.rate} on demand: {why}"
    return recovery.move_to(slot, ask, Reason("fallback", sentence, options))


def _go_elsewhere(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal | None:
    """Return the move of a healthy lease if that pays: from on-demand to a bid, or from a bid to a cheaper one."""
    if lease.state is not LeaseState.RUNNING:
        return None
    return _leave(slot, lease, grounds) if lease.tenure is Tenure.INTERRUPTIBLE else _go_back(slot, lease, grounds)


def _go_back(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal | None:
    """Return the move away from on-demand: after its minimum time, in a calm market, to another host, at a gain."""
    view, params = grounds.view, grounds.params
    is_settled = view.now - lease.state_since >= params.return_after
    if not is_settled or grounds.loss_rate >= CALM_SHARE * params.most_losses:
        return None
    lost = hedging.lost_hosts(view, params.host_rest)
    elsewhere = [candidate for candidate in grounds.bids if candidate.offer.host not in lost]
    best = grounds.spread.first(slot.slot, elsewhere, may_crowd=False)
    gain, hours = params.return_gain, params.return_horizon_hours
    return voluntary_move.move_to_cheaper(slot, view.workload, best, gain, hours, fastest=view.fastest)


def _leave(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal | None:
    """Return the move of a healthy interruptible lease to a cheaper offer, after its minimum time."""
    params, view = grounds.params, grounds.view
    if not view.has_offers or view.now - lease.state_since < params.leave_after:
        return None
    best = grounds.best(slot) if grounds.is_by_value else grounds.bid(slot)
    hours = params.return_horizon_hours
    here, gain = grounds.hazard(lease), params.leave_gain
    return voluntary_move.move_to_cheaper(slot, view.workload, best, gain, hours, here, fastest=view.fastest)
