"""One slot with a deadline on several markets: it runs where finishing in time is expected to cost least, or waits.

`agent.decide.deadline.deadline_markets` makes the choice; this module turns it into the slot's move. This rule outranks
every other rule of `hedged`.

Invariant: work whose only checkpoint is on a disk stays with that disk.
"""

from agent.decide.deadline import deadline_markets, on_demand_fallback
from agent.decide.deadline.deadline_markets import MarketChoice
from agent.decide.moves import recovery, voluntary_move
from agent.decide.strategy import Proposal, SlotView
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy
from agent.domain.work.decision import WAITS, Reason
from strategies.hedged_rules import upkeep
from strategies.hedged_rules.grounds import Grounds


def propose(slot: SlotView, grounds: Grounds) -> Proposal | None:
    """Return the proposal for a slot; None without a choice of markets, or if another rule decides about the slot."""
    lease = slot.lease
    choice = _choose(slot, grounds)
    if choice is None:
        return None
    if lease is not None:
        leaving = upkeep.leave_ending(slot, lease, grounds, choice.candidate)
        if leaving is not None:
            return deadline_markets.with_costs(leaving, choice)
    if deadline_markets.is_running(slot, choice):
        return None if lease is None else _stay(slot, lease, choice, grounds)
    if choice.tenure is None:
        return _wait(slot, choice, grounds)
    return _go(slot, choice, grounds)


def _choose(slot: SlotView, grounds: Grounds) -> MarketChoice | None:
    """Return the choice with the least expected cost; None unless the workload asks for it."""
    params, view, lease = grounds.params, grounds.view, slot.lease
    is_asked = params.weigh_markets and len(view.workload.places) == 1
    if not is_asked or (lease is not None and not only_copy.may_leave(lease, view.workload)):
        return None
    numbers = on_demand_fallback.FallbackParams(params.reserve, params.start_delay)
    return deadline_markets.choose(view, slot, numbers, view.ranking(grounds.pricing), grounds.asks, params.weighing)


def _go(slot: SlotView, choice: MarketChoice, grounds: Grounds) -> Proposal | None:
    """Return the move to the choice; a hold if a running slot may not go there now, None for another slot."""
    to, lease = choice.candidate, slot.lease
    if to is None or not recovery.may_go(slot, grounds.view.workload, to):
        return _stay(slot, lease, choice, grounds) if lease is not None and slot.down is None else None
    place = f"host {to.offer.host_id} of {to.offer.market} at {to.way.rate} {to.way.tenure.value}"
    code = "fallback" if choice.tenure is Tenure.ON_DEMAND else "best_offer"
    return recovery.move_to(slot, to, Reason(code, f"hold {place}; {choice.sentence}", choice.options))


def _wait(slot: SlotView, choice: MarketChoice, grounds: Grounds) -> Proposal:
    """Return a wait without a lease; a running lease is released only within the day's moves for cheaper offers."""
    lease, why = slot.lease, Reason(WAITS, choice.sentence, choice.options)
    if lease is None or slot.down is not None:
        return Proposal(slot.slot, None, why)
    if lease.state is not LeaseState.RUNNING or slot.runs >= voluntary_move.MOST_LEAVES:
        return _stay(slot, lease, choice, grounds)
    return Proposal(slot.slot, IntentKind.RELEASE, why, lease=lease)


def _stay(slot: SlotView, lease: Lease, choice: MarketChoice, grounds: Grounds) -> Proposal:
    return deadline_markets.with_costs(upkeep.calm(slot, lease, grounds), choice)
