"""Slots spread over hosts, owners and markets; they fall back to on-demand by rule, and move back.

The first of four rules that applies to a slot decides about it (`strategies/hedged_rules/`):

1. `deadline_on_one_market`: work of one slot with a deadline, while one market is known for it.
2. `deadline_over_markets`: the same work over several markets.
3. `warm_service`: a service with `keep_warm`.
4. `spread_with_fallback`: everything else.
"""

from collections.abc import Sequence
from typing import ClassVar

from agent.decide.moves.auctions import value_upkeep
from agent.decide.service.service_slots import ServiceChoice
from agent.decide.strategy import Params, Proposal, SlotView, View
from agent.domain.work.decision import Reason
from strategies.hedged_rules import (
    deadline_on_one_market,
    deadline_over_markets,
    spread_with_fallback,
    upkeep,
    warm_service,
)
from strategies.hedged_rules import grounds as view_grounds
from strategies.hedged_rules.grounds import Grounds
from strategies.hedged_rules.params import HedgedParams


class Hedged:
    """Spread slots; fall back when a slot is down too long or losses are frequent; move back when that pays."""

    params: ClassVar[type[Params]] = HedgedParams

    def propose(self, view: View, params: Params) -> Sequence[Proposal]:
        """Return at most one move for each slot, and none for a slot whose move is under way."""
        if not isinstance(params, HedgedParams):
            raise TypeError("hedged runs on HedgedParams")
        alone = deadline_on_one_market.propose(view, params)
        if alone is not None:
            return alone
        grounds = view_grounds.of(view, params)
        kept = warm_service.keep(grounds)
        return [_placed(_propose(slot, grounds, kept), grounds) for slot in view.slots]


def _propose(slot: SlotView, grounds: Grounds, kept: ServiceChoice | None) -> Proposal:
    if slot.arriving is not None:
        moving = Proposal(slot.slot, None, Reason("moving", f"waits for host {slot.arriving.host_id} to be ready"))
        return deadline_over_markets.give_up(slot, slot.arriving, grounds) or moving
    if following := value_upkeep.follow_value(slot, grounds.view, grounds.view.fastest):
        return following
    chosen = deadline_over_markets.propose(slot, grounds) or upkeep.under_notice(slot, grounds)
    if chosen is None and kept is not None:
        chosen = warm_service.propose(slot, grounds, kept)
    chosen = chosen or spread_with_fallback.propose(slot, grounds)
    return value_upkeep.while_down(chosen, slot, grounds.view, grounds.view.fastest)


def _placed(proposal: Proposal, grounds: Grounds) -> Proposal:
    """Return the proposal, and count its slot at the new place so that the next slots keep the shares."""
    if proposal.candidate is not None:
        grounds.spread.put(proposal.slot, proposal.candidate)
    return proposal
