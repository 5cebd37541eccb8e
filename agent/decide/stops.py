"""What has to end now, by what the ledger alone knows: after a kill, by a person's word, over a hard cap."""

from agent.decide import capping, cooldown, due, halt, limits, slots, words
from agent.domain.decision import Pause, Reason, Release
from agent.domain.fleet import Fleet
from agent.domain.lease import Bills, LeaseState


def stops(fleet: Fleet, caps: limits.Limits) -> tuple[Pause | Release, ...]:
    """Return one order for each lease that must end whatever the market lists now; no listing has to be fresh."""
    found: dict[str, Pause | Release] = {}
    cooling = cooldown.cooling(fleet.cooldowns, fleet.now)
    unfinished = tuple(
        Release(held, Reason(slots.RELEASE_AGAIN, "the market has not confirmed the release"))
        for held in fleet.leases
        if held.state is LeaseState.RELEASING and held.bills is not Bills.NOTHING
    )
    capped = capping.endings(fleet, limits.standing(fleet), caps)
    for order in (*unfinished, *halt.orders(fleet), *words.orders(fleet, cooling), *capped):
        if due.may_go(order):
            found.setdefault(order.lease.lease_id, order)
    return tuple(found.values())
