"""The limit of a lease follows what its hour is worth, as the file and the record of its host change.

A raise for a lease that does not run comes after a start or a move of its slot, because a cap may forbid it for ever.
"""

from datetime import timedelta

from agent.decide.pricing import offer_terms, useful_hour, value_limit
from agent.decide.strategy import Proposal, SlotView, View
from agent.domain.money import FREE
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work.decision import Reason

FOLLOW_EVERY = timedelta(minutes=10)
"""How often a limit follows the value of its hour: a few auctions. Assumed."""
FOLLOW_GAP = 0.1
"""A limit closer than this share to the value stays. Assumed."""
_FOLLOWED = frozenset({LeaseState.RUNNING, LeaseState.STARTING, LeaseState.PAUSED})


def follow_value(slot: SlotView, view: View, fastest: float) -> Proposal | None:
    """Return the change of a lease's limit to what its hour is worth now; None for a raise while it does not run."""
    following = _followed(slot, view, fastest)
    return None if following is not None and slot.down is not None and _is_raise(following) else following


def while_down(proposal: Proposal, slot: SlotView, view: View, fastest: float) -> Proposal:
    """Return the raise of the limit of a bid that waits, or what its slot proposes: a start or a move goes first."""
    if proposal.kind is not None or slot.down is None or slot.lease is None or slot.lease.paused_by_us:
        return proposal
    following = _followed(slot, view, fastest)
    return following if following is not None and _is_raise(following) else proposal


def _is_raise(proposal: Proposal) -> bool:
    lease, bid = proposal.lease, proposal.bid
    return lease is not None and bid is not None and bid > lease.bid


def _followed(slot: SlotView, view: View, fastest: float) -> Proposal | None:
    """Return the change of a lease's limit to what its hour is worth now; None if the limit is near that.

    A limit above what the file allows is lowered at once. Every other change waits for `FOLLOW_EVERY` and for a
    difference of `FOLLOW_GAP`: each is a write. `fastest` is as for bids.
    """
    lease, work = slot.lease, view.workload
    if lease is None or lease.bid_limit is None or lease.state not in _FOLLOWED:
        return None
    share = offer_terms.speed(lease.dlperf, fastest)
    most = work.prices.at_speed(lease.gpu, share)
    worth = most if work.value_per_hour is None else work.value_per_hour.scaled(share)
    limit = value_limit.of_lease(lease, work, worth, most, _hazard(lease, view))
    is_settled = view.now - (lease.bid_since or lease.opened_at) >= FOLLOW_EVERY
    is_far = abs((limit - lease.bid_limit).micros) > lease.bid_limit.micros * FOLLOW_GAP
    is_allowed = lease.bid_limit <= min(worth, most - lease.disk_rate)
    if limit <= FREE or limit == lease.bid_limit or (is_allowed and not (is_settled and is_far)):
        return None
    sentence = f"an hour is worth {limit} at most: change the limit from {lease.bid_limit}"
    return Proposal(slot.slot, IntentKind.REBID, Reason("value_limit", sentence), lease=lease, bid=limit)


def _hazard(lease: Lease, view: View) -> float:
    """Return the losses to the market per hour that a lease's limit does not avoid."""
    hazard = useful_hour.contested_hazard(view.hosts.get(lease.host), view.market_hazard)
    floor = lease.host_floor.micros if lease.host_floor is not None else 0
    return hazard * view.rivals.losing_share(max(lease.bid.micros / floor - 1.0, 0.0)) if floor else hazard
