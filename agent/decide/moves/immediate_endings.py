"""Endings that the ledger alone decides: after a kill, by a person's order, over a hard cap."""

from agent.decide import slot_releases
from agent.decide.limits import cap_endings, limits
from agent.decide.moves import due_endings
from agent.decide.moves.auctions import lower_limit
from agent.decide.operators import operator_holds
from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.lease import Bills, LeaseState
from agent.domain.work.decision import Pause, Reason, Release


def stops(fleet: Fleet, caps: limits.Limits) -> tuple[Pause | Release, ...]:
    """Return one order for each lease that must end by the ledger alone; no fresh listing is needed."""
    holds = hold.in_force(fleet.holds, fleet.now)
    unfinished = tuple(
        Release(lease, Reason(slot_releases.RELEASE_AGAIN, "the market has not confirmed the release"))
        for lease in fleet.leases
        if lease.state is LeaseState.RELEASING and lease.bills is not Bills.NOTHING
    )
    # A limit that the next plan lowers pauses nothing before it.
    capped = cap_endings.endings(fleet, limits.committed_by_fleet(fleet), caps, lower_limit.lowest(fleet))
    return tuple(due_endings.orders((*unfinished, *operator_holds.orders(fleet, holds), *capped)))
