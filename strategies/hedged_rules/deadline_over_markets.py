"""One slot with a deadline on several markets: it runs where finishing in time is expected to cost least, or waits.

`agent.decide.deadline.deadline_markets` makes the choice; this module turns it into the slot's move. This rule outranks
every other rule of `hedged`.

Invariants:
1. Work whose only checkpoint is on a disk stays with that disk.
2. From the last call on only on-demand is rented, even if the day has no move left or the market ends the lease anyway.
"""

from dataclasses import replace

from agent.decide.deadline import deadline_markets, on_demand_fallback
from agent.decide.deadline import deadline_progress as tasks
from agent.decide.deadline.deadline_markets import MarketChoice
from agent.decide.moves import recovery, voluntary_move
from agent.decide.strategy import NEVER, Proposal, SlotView
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease, LeaseState
from agent.domain.work import only_copy
from agent.domain.work.decision import WAITS, Reason
from strategies.hedged_rules import upkeep
from strategies.hedged_rules.grounds import Grounds
from strategies.hedged_rules.params import HedgedParams


def propose(slot: SlotView, grounds: Grounds) -> Proposal | None:
    """Return the proposal for a slot; None without a choice of markets, or if another rule decides about the slot."""
    lease = slot.lease
    if _is_done(grounds):
        return _done(slot, grounds)
    choice = _choose(slot, grounds)
    if choice is None:
        return None
    if choice.is_last_call:
        return _go(slot, choice, grounds)
    if noticed := upkeep.under_notice(slot, grounds):
        return noticed
    if lease is not None:
        leaving = upkeep.leave_ending(slot, lease, grounds, choice.candidate)
        if leaving is not None:
            return deadline_markets.with_costs(leaving, choice)
    moved = _wait(slot, choice, grounds) if choice.tenure is None else _go(slot, choice, grounds)
    return _keep(slot, choice, grounds) or moved


def _is_done(grounds: Grounds) -> bool:
    """Return whether the work of a slot that is alone is done, wherever its disk is."""
    task, work = grounds.view.task, grounds.view.workload
    is_alone = grounds.params.weigh_markets and len(work.places) == 1 and len(grounds.view.by_market) > 1
    return is_alone and task is not None and task.todo <= 0


def _done(slot: SlotView, grounds: Grounds) -> Proposal:
    """Return the hold of a slot whose work is done: a lease that runs may still end by itself, and is not moved."""
    lease = slot.lease
    if lease is not None and lease.is_live and slot.down is None:
        return upkeep.calm(slot, lease, grounds)
    bills = f"; its disk bills {lease.disk_rate} until then" if lease is not None and lease.is_open else ""
    return Proposal(slot.slot, None, Reason("work_done", tasks.why_done(slot.slot.workload) + bills))


def _keep(slot: SlotView, choice: MarketChoice, grounds: Grounds) -> Proposal | None:
    """Return the hold of a lease that runs as chosen, or that the file keeps; None if it may be left, or is down."""
    lease = slot.lease
    if lease is None or slot.down is not None:
        return None
    if deadline_markets.is_running(slot, choice):
        return _stay(slot, lease, choice, grounds)
    why = _why_kept(lease, choice, grounds.params)
    return _stay(slot, lease, choice, grounds, why) if why else None


def _why_kept(lease: Lease, choice: MarketChoice, params: HedgedParams) -> str:
    """Return the number of the file that keeps a lease whatever other places are expected to cost; empty without one.

    On-demand is left for faster on-demand all the same. Short of "never", the expected costs replace these numbers.
    """
    if lease.tenure is choice.tenure is Tenure.ON_DEMAND:
        return ""
    side = "return" if lease.tenure is Tenure.ON_DEMAND else "leave"
    after, gain = getattr(params, f"{side}_after"), getattr(params, f"{side}_gain")
    return f"`{side}_after` is never" if after == NEVER else f"`{side}_gain` is 1" if gain >= 1 else ""


def give_up(slot: SlotView, arriving: Lease, grounds: Grounds) -> Proposal | None:
    """Return the release of a bid that a slot moves to and that has no time left; None if the move goes on."""
    known = None
    if _is_asked(slot, grounds):
        known = deadline_markets.fallback(grounds.view, slot, _numbers(grounds.params), grounds.asks)
    if known is None or not on_demand_fallback.is_too_late(arriving, grounds.view.workload, known[1]):
        return None
    sentence = f"there is no time left to wait for host {arriving.host_id}; slack {known[1].slack:.2f} h"
    return Proposal(slot.slot, IntentKind.RELEASE, Reason("too_late", sentence), lease=arriving)


def _choose(slot: SlotView, grounds: Grounds) -> MarketChoice | None:
    """Return the choice with the least expected cost; None unless the workload asks for it."""
    if not _is_asked(slot, grounds):
        return None
    view, params = grounds.view, grounds.params
    ranked = view.ranking(grounds.pricing)
    return deadline_markets.choose(view, slot, _numbers(params), ranked, grounds.asks, params.weighing)


def _is_asked(slot: SlotView, grounds: Grounds) -> bool:
    """Return whether this rule may decide about a slot: one that is alone, and whose disk may be lost."""
    work = grounds.view.workload
    is_bound = slot.lease is not None and not only_copy.may_leave(slot.lease, work)
    return grounds.params.weigh_markets and len(work.places) == 1 and not is_bound


def _numbers(params: HedgedParams) -> on_demand_fallback.FallbackParams:
    return on_demand_fallback.FallbackParams(params.reserve, params.start_delay)


def _go(slot: SlotView, choice: MarketChoice, grounds: Grounds) -> Proposal | None:
    """Return the move to the choice; a hold if a running slot may not go there now, None for another slot.

    At the last call the moves of the day do not count.
    """
    to, lease = choice.candidate, slot.lease
    if to is None or not (choice.is_last_call or recovery.may_go(slot, grounds.view.workload, to)):
        return _stay(slot, lease, choice, grounds) if lease is not None and slot.down is None else None
    place = f"host {to.offer.host_id} of {to.offer.market} at {to.way.rate} {to.way.tenure.value}"
    is_asked = choice.tenure is Tenure.ON_DEMAND
    why = ": it must" if choice.is_last_call else f": {choice.why_left}" if is_asked and choice.why_left else ""
    code = "fallback" if is_asked else "best_offer"
    return recovery.move_to(slot, to, Reason(code, f"hold {place}{why}; {choice.sentence}", choice.options))


def _wait(slot: SlotView, choice: MarketChoice, grounds: Grounds) -> Proposal:
    """Return a wait without a lease; a running lease is released only within the day's moves for cheaper offers."""
    lease, why = slot.lease, Reason(WAITS, choice.sentence, choice.options)
    if lease is None or slot.down is not None:
        return Proposal(slot.slot, None, why)
    if lease.state is not LeaseState.RUNNING or slot.runs >= voluntary_move.MOST_LEAVES:
        return _stay(slot, lease, choice, grounds)
    return Proposal(slot.slot, IntentKind.RELEASE, why, lease=lease)


def _stay(slot: SlotView, lease: Lease, choice: MarketChoice, grounds: Grounds, why: str = "") -> Proposal:
    calm = upkeep.calm(slot, lease, grounds)
    sentence = f"{calm.reason.sentence}: {why}" if why else calm.reason.sentence
    return deadline_markets.with_costs(replace(calm, reason=replace(calm.reason, sentence=sentence)), choice)
