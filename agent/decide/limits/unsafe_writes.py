"""Strikes against writes that are not about money: to an instance that may not be ours, or that may run unseen.

Invariant: a strike holds a write back for now. It never makes one.
"""

from agent.decide.limits import limits
from agent.decide.reconcile import ownership
from agent.domain.fleet import Fleet
from agent.domain.record.lease import LeaseState
from agent.domain.work import usefulness
from agent.domain.work.decision import Decision, Hold, Pause, Release, Rent


def strike(decision: Decision, fleet: Fleet, *, is_slot_wanted: bool = True) -> limits.Strike | None:
    """Return the first reason why a decision may not be carried out now, or None."""
    kept = (_for_good(decision, fleet) if is_slot_wanted else None) or of_unrented(decision, fleet)
    return kept or _untouchable(decision) or _unseen(decision, fleet)


def of_unrented(decision: Decision, fleet: Fleet) -> limits.Strike | None:
    """Return a strike against ending a lease that this ledger did not rent, while nothing may be paid for.

    Somebody may use it, and it could not be rented again. Orders of a person and of a hard cap are not checked.
    """
    if not isinstance(decision, Pause | Release) or decision.lease.intent_id:
        return None
    view = fleet.markets.get(decision.lease.market)
    if view is None or not view.no_spend_because:
        return None
    return limits.Strike("no_spend", view.no_spend_because)


def _untouchable(decision: Decision) -> limits.Strike | None:
    """Return a strike against a write to an instance that is not proven ours or shows another label now (rule 18)."""
    why = "" if isinstance(decision, Hold | Rent) else ownership.why_untouched(decision.lease)
    return limits.Strike("ownership", why) if why else None


def _unseen(decision: Decision, fleet: Fleet) -> limits.Strike | None:
    """Return a strike against stopping a lost or starting lease that may run by now.

    Its market was not listed, or what it lists could not be recorded.
    """
    if not isinstance(decision, Pause | Release):
        return None
    lease = decision.lease
    is_lost = lease.state in {LeaseState.PAUSED, LeaseState.OFFLINE} and not lease.paused_by_us
    if not is_lost and lease.state is not LeaseState.STARTING:
        return None
    if not fleet.is_seen(lease):
        return limits.Strike("unseen", f"{lease.market} was not listed: {lease.lease_id} may run by now")
    if fleet.is_listed_running(lease):
        return limits.Strike("unseen", f"{lease.market} lists {lease.lease_id} as running, which is not recorded yet")
    return None


def _for_good(decision: Decision, fleet: Fleet) -> limits.Strike | None:
    """Return a strike against a release that empties a slot while nothing may be rented again."""
    if not isinstance(decision, Release):
        return None
    given_up, place = decision.lease, decision.lease.slot
    view = fleet.markets.get(given_up.market)
    unpaid = None if view is None else limits.unpaid(view)
    if unpaid is None:
        return None
    others = (lease for lease in fleet.leases_of(place) if lease.lease_id != given_up.lease_id and fleet.is_seen(lease))
    if any(usefulness.is_useful(lease, fleet.workload(place.workload)) for lease in others):
        return None
    return unpaid
