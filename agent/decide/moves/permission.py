"""Whether a decision may be carried out: by cooldowns, a person's holds, the limits, and the safety of a write."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from agent.decide import slots
from agent.decide.demand import demand_window
from agent.decide.limits import limit_cut, limits, unsafe_writes
from agent.decide.moves.auctions import waiting_room
from agent.decide.operators import operator_holds
from agent.decide.pricing.cooldowns import InForce
from agent.domain.fleet import Fleet
from agent.domain.work.decision import Decision, Hold, Rent, Resume, slot_of
from agent.domain.work.workload import Workload


@dataclass(frozen=True, slots=True)
class Bounds:
    """The inputs of a decision's checks: fleet, limits, markets at fault, cooldowns, and the believed workloads."""

    fleet: Fleet
    caps: limits.Limits
    faulty: frozenset[str]
    in_force: InForce
    believed: Mapping[str, Workload]


def permitted(decision: Decision, bounds: Bounds, now_standing: limits.CommittedSpend) -> Decision:
    """Return a decision, or a hold with the reason that forbids it."""
    return allowed(willed(decision, bounds.in_force), bounds, now_standing)


def willed(decision: Decision, in_force: InForce) -> Decision:
    """Return a decision, or a hold if its slot has just been moved or a person's hold forbids it."""
    decision = _cooled(decision, in_force)
    word = operator_holds.forbidden(decision, in_force.holds)
    if word is None or isinstance(decision, Hold):
        return decision
    sentence = f"{word.sentence}; it would {decision.reason.sentence}"
    return Hold(slot_of(decision), replace(decision.reason, code=word.code, sentence=sentence))


def allowed(decision: Decision, bounds: Bounds, now_standing: limits.CommittedSpend) -> Decision:
    """Return a decision, one at a lower limit that is allowed, or a hold with the limit that forbids it."""
    struck = None if isinstance(decision, Hold) else _struck(decision, bounds, now_standing)
    if struck is None:
        return decision
    price = waiting_room.price_to_win(bounds.fleet, decision.lease) if isinstance(decision, Resume) else None
    cut = limit_cut.within(decision, lambda each: _struck(each, bounds, now_standing) is None, price)
    if cut is not None:
        return cut
    sentence = f"{struck.sentence}; it would {decision.reason.sentence}"
    return Hold(slot_of(decision), replace(decision.reason, code="limit", sentence=sentence, limit=struck.limit))


def _cooled(decision: Decision, in_force: InForce) -> Decision:
    """Return a decision, or a hold that replaces a slot's second move within one cool-off."""
    cooldown = slots.cool_off(decision.slot, in_force) if isinstance(decision, Rent) else None
    return decision if cooldown is None else Hold(slot_of(decision), cooldown)


def _struck(decision: Decision, bounds: Bounds, now_standing: limits.CommittedSpend) -> limits.Strike | None:
    struck = limits.strike(decision, bounds.fleet, now_standing, bounds.caps, bounds.faulty)
    # What a demand does not want need not be rented again.
    is_wanted = decision.reason.code != demand_window.CODE
    return struck or unsafe_writes.strike(decision, bounds.fleet, is_slot_wanted=is_wanted)
