"""Slots of a service that must stay warm: one choice over all places decides their number and places.

The choice is made once per view (`agent.decide.service.service_slots`), and each slot takes its part of it. This rule
outranks the fallback and the move back.

Invariant: a running lease that is part of the choice is left alone. No lease is given up before enough others run.
"""

from agent.decide.moves import recovery, voluntary_move
from agent.decide.service import service_slots
from agent.decide.service.service_slots import ServiceChoice
from agent.decide.strategy import AUTO, Candidate, Proposal, SlotView
from agent.domain.market.tenure import Tenure
from agent.domain.record.intent import IntentKind
from agent.domain.record.lease import Lease
from agent.domain.work import only_copy
from agent.domain.work.decision import SPARE, Reason
from agent.domain.work.workload import WorkloadKind
from strategies.hedged_rules import upkeep
from strategies.hedged_rules.grounds import Grounds


def keep(grounds: Grounds) -> ServiceChoice | None:
    """Return the choice for the workload; None without `keep_warm`, for a batch, or without recent offers."""
    view, params = grounds.view, grounds.params
    if not (params.keep_warm and view.workload.kind is WorkloadKind.SERVICE and view.has_offers):
        return None
    value = view.workload.value_per_hour if params.short_worth == AUTO else None
    numbers = service_slots.ServiceParams(
        params.short_hours, params.spare_slots, params.cold_start, params.return_gain, value, params.target
    )
    return service_slots.choose(view, numbers, grounds.bids, grounds.asks)


def propose(slot: SlotView, grounds: Grounds, kept: ServiceChoice) -> Proposal:
    """Return the proposal for a slot, and remove its part from the choice."""
    lease = slot.lease
    if lease is None:
        return _fill(slot, grounds, kept) or _nothing(slot)
    if slot.down is not None:
        # A lease that ended by itself or by a person's order would end elsewhere too, so recovery keeps it for a while.
        is_left = lease.interrupted_by in recovery.NOT_OF_THE_MARKET
        return (None if is_left else _fill(slot, grounds, kept)) or upkeep.recover(slot, lease, grounds)
    moved = _change(slot, lease, grounds, kept)
    return moved or upkeep.leave_ending(slot, lease, grounds) or upkeep.calm(slot, lease, grounds)


def _fill(slot: SlotView, grounds: Grounds, kept: ServiceChoice) -> Proposal | None:
    """Return the rent for an empty slot that the choice lacks, or a hold; None if no lacking place can be rented."""
    to = _place_of(slot, grounds, kept) if kept.lacking else None
    if to is not None:
        kept.lacking -= 1
        return recovery.move_to(slot, to, service_slots.reason_for(to, kept))
    if kept.lacking:
        return None
    why = Reason(SPARE, f"a slot above {kept.needed} saves less than it costs{_target(kept)}")
    is_left = slot.lease is not None and only_copy.may_leave(slot.lease, grounds.view.workload)
    return Proposal(slot.slot, IntentKind.RELEASE if is_left else None, why, lease=slot.lease if is_left else None)


def _target(kept: ServiceChoice) -> str:
    return "" if kept.dial is None else f"; {kept.dial.sentence}"


def _nothing(slot: SlotView) -> Proposal:
    return Proposal(slot.slot, None, Reason("no_offer", "no offer is worth its price"))


def _change(slot: SlotView, lease: Lease, grounds: Grounds, kept: ServiceChoice) -> Proposal | None:
    """Return the release or move of a running lease that is not part of the choice; None if it stays."""
    if kept.includes(lease) or not only_copy.may_leave(lease, grounds.view.workload):
        return None
    if kept.may_spare(lease):
        kept.surplus -= 1
        sentence = f"{kept.running} others run, and a slot above {kept.needed} saves less than it costs{_target(kept)}"
        return Proposal(slot.slot, IntentKind.RELEASE, Reason(SPARE, sentence), lease=lease)
    return _elsewhere(slot, lease, grounds, kept)


def _elsewhere(slot: SlotView, lease: Lease, grounds: Grounds, kept: ServiceChoice) -> Proposal | None:
    """Return the move of a running lease to a place of the choice: to on-demand at once, to a bid if that pays."""
    params, view = grounds.params, grounds.view
    to = _place_of(slot, grounds, kept)
    if to is None or (to.way.tenure is Tenure.ON_DEMAND and lease.tenure is Tenure.ON_DEMAND):
        return None
    if to.way.tenure is Tenure.ON_DEMAND:
        return recovery.move_to(slot, to, service_slots.reason_for(to, kept))
    gain, hours = params.return_gain, params.return_horizon_hours
    return voluntary_move.move_to_cheaper(slot, view.workload, to, gain, hours, grounds.hazard(lease))


def _place_of(slot: SlotView, grounds: Grounds, kept: ServiceChoice) -> Candidate | None:
    """Remove and return the next place of the choice that this slot may use, interruptible ones first, or None."""
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
