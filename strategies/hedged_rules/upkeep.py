"""Steps of every rule of `hedged` for a lease that stays: recover a lost one, leave a host that ends, lower a bid."""

from agent.decide.moves import bid_decay, recovery
from agent.decide.pricing import bidding
from agent.decide.strategy import Candidate, Proposal, SlotView
from agent.domain.record.lease import Lease
from strategies.hedged_rules.grounds import Grounds


def recover(slot: SlotView, lease: Lease, grounds: Grounds) -> Proposal:
    """Return the recovery of a lost lease: wait, raise, start again or move, by cost."""
    view, params = grounds.view, grounds.params
    best = grounds.bid(slot)
    numbers = recovery.RecoveryParams(
        ceiling=bidding.ceiling(view.workload.price_of(lease.gpu), lease.disk_rate, lease.ask, params.ceiling),
        raise_headroom=params.raise_headroom,
        least_gain=params.least_gain,
        may_move=True,
        may_raise=True,
        worth=view.workload.value_of(lease.gpu).scaled(params.idle_worth),
        fastest=view.fastest,
        rivals=view.rivals,
    )
    elsewhere = [] if best is None else [best]
    return recovery.recover(slot, view.workload, elsewhere, grounds.hazard(lease), numbers, view.now)


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
