"""A bid for an empty slot where nobody can say which bid would win: it costs nothing before an auction."""

from agent.decide.pricing import offer_terms
from agent.decide.strategy import Proposal, SlotView, View
from agent.domain.record.intent import IntentKind
from agent.domain.work.decision import Reason


def propose(slot: SlotView, view: View, bids: offer_terms.Bids) -> Proposal | None:
    """Return the bid of what an hour is worth in the best such pool, or None.

    It is only for a slot for which no offer of known price fits: no price is expected there.
    """
    found = next(iter(view.ranking(offer_terms.WaitingBids(bids))), None) if bids.limits else None
    if found is None:
        return None
    offer = found.offer
    sentence = (
        f"bid {found.way.bid} for {offer.gpus}x {offer.gpu} in {offer.host_id} of {offer.market}: which bid wins is "
        "not known, so it waits without an expected price"
    )
    return Proposal(slot.slot, IntentKind.RENT, Reason("waiting_bid", sentence), candidate=found)
