"""Steps of every rule of `hedged` for a lease that stays: recover a lost one, leave a host that ends, lower a bid."""

import math

from agent.decide.moves import bid_decay, recovery
from agent.decide.moves.auctions import notice_move
from agent.decide.pricing import bidding
from agent.decide.pricing.worth import work_value
from agent.decide.strategy import Candidate, Proposal, SlotView
from agent.domain.record.lease import Lease
from strategies.hedged_rules.grounds import Grounds


def recover(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal:
    """Return the recovery of a lost lease: wait, raise, start again or move, by cost."""
    view, hazard = grounds.view, grounds.hazard(lease)
    return recovery.recover(
        slot, view.workload, _elsewhere(slot, lease, grounds), hazard, _numbers(lease, grounds), view.now
    )


def under_notice(slot: SlotView, grounds: Grounds) -> Proposal | None:
    """Return the replacement of a lease that the market ends, or a hold; None without a notice."""
    lease = slot.lease
    if lease is None or lease.notice_at is None:
        return None
    others, hazard = _elsewhere(slot, lease, grounds), grounds.hazard(lease)
    return notice_move.propose(slot, grounds.view.workload, others, hazard, _numbers(lease, grounds))


def _elsewhere(slot: SlotView, lease: Lease, grounds: Grounds) -> list[Candidate]:
    best = grounds.bid(slot)
    if lease.bid_limit is not None and best is not None:
        others = (each for each in grounds.bids if grounds.spread.fits(slot.slot, each))
        best = notice_move.elsewhere(lease, others)
    ask = grounds.fallback(slot) if grounds.is_by_value else None
    return [each for each in (best, ask) if each is not None]


def _numbers(lease: Lease, grounds: Grounds) -> recovery.RecoveryParams:
    view, params = grounds.view, grounds.params
    idle = 1.0 if lease.bid_limit is not None else _idle_share(grounds)
    return recovery.RecoveryParams(
        ceiling=bidding.ceiling(view.workload.price_of(lease.gpu), lease.disk_rate, lease.ask, params.ceiling),
        raise_headroom=params.raise_headroom,
        least_gain=params.least_gain,
        may_move=True,
        may_raise=True,
        worth=view.workload.value_of(lease.gpu).scaled(idle),
        fastest=view.fastest,
        most_speed=1.0 if view.workload.value_per_hour is None or view.fastest == 0 else math.inf,
        rivals=view.rivals,
        starts_by_itself=view.starts_by_itself(lease),
    )


def _idle_share(grounds: Grounds) -> float:
    params = grounds.params
    return work_value.share(params.idle_worth, grounds.view.workload, params.unvalued["idle_worth"])


def leave_ending(slot: SlotView, lease: Lease, grounds: Grounds, preferred: Candidate | None = None) -> Proposal | None:
    """Return the move of a lease whose host leaves the market; None if it stays or nothing else fits."""
    if not recovery.ends_soon(lease, grounds.view.now):
        return None
    best = preferred or grounds.bid(slot) or grounds.ask(slot)
    return recovery.leave_ending_host(slot, grounds.view.workload, best, grounds.view.now)


def calm(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal:
    """Return a lower bid for a lease that has been calm for long, or hold it."""
    params = grounds.params
    numbers = bid_decay.BidDecayParams(params.headroom, params.lower_step, params.lower_after)
    return bid_decay.lower(slot, lease, numbers, grounds.view.now)
