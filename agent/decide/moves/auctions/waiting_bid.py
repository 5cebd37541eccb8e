"""A bid for an empty slot that nothing fits: it waits for an auction, and costs nothing before it wins.

It waits in the pool where it most likely wins:
1. A pool of unknown price comes first. Its price may be below our value already, and only a bid can tell.
2. Then comes the pool whose price to win is the smallest multiple of our limit: of two prices that move by like shares,
   the nearer one falls below the limit sooner. The search sees that fall too; the bid saves the minutes until then.

Invariants:
1. A bid of known price waits in no pool where the workload has a lease. The highest losing bid is the price of all who
   won: a bid of ours that loses could raise what our own lease pays, up to its limit.
2. No price is expected, so nothing counts on one; caps count the bid at its limit.
"""

from agent.decide.pricing import offer_terms
from agent.decide.strategy import Candidate, Proposal, SlotView, View
from agent.domain.record.intent import IntentKind
from agent.domain.work.decision import Reason


def propose(slot: SlotView, view: View, bids: offer_terms.Bids) -> Proposal | None:
    """Return the bid of what an hour is worth in the likeliest pool, or None.

    It is only for a slot for which no offer fits within its value.
    """
    found = _likeliest(slot, view, bids) if bids.limits else None
    if found is None:
        return None
    offer = found.offer
    known = "which bid wins is not known" if offer.floor is None else f"only a bid of {offer.floor} would win now"
    sentence = (
        f"bid {found.way.bid} for {offer.gpus}x {offer.gpu} in {offer.host_id} of {offer.market}: {known}, so it waits "
        "without an expected price"
    )
    return Proposal(slot.slot, IntentKind.RENT, Reason("waiting_bid", sentence), candidate=found)


def _likeliest(slot: SlotView, view: View, bids: offer_terms.Bids) -> Candidate | None:
    used = {lease.host for lease in view.leases if lease.is_open}
    known: list[Candidate] = []
    for candidate in view.ranking(offer_terms.WaitingBids(bids)):
        if candidate.offer.floor is None:
            return candidate
        if candidate.offer.host not in used:
            known.append(candidate)
    known.sort(key=_distance)
    # The earlier empty slots of the workload take the nearer pools.
    place = sum(other.lease is None for other in view.slots[: view.slots.index(slot)])
    return known[place] if place < len(known) else None


def _distance(candidate: Candidate) -> float:
    """Return the price to win as a multiple of the limit."""
    floor, limit = candidate.offer.floor, candidate.way.bid
    return 1.0 if floor is None else floor.micros / limit.micros
