"""What a person's stop of all spending still has to end: a kill holds until it is lifted, whatever turns up later."""

from collections.abc import Iterator

from agent.decide import words
from agent.domain.decision import Pause, Reason, Release
from agent.domain.fleet import Fleet
from agent.domain.lease import LeaseState

EVERYTHING = ("fleet", "all")
"""The rest under which nothing is rented, raised or started."""
KEEPS_DISKS = ("fleet", "disks")
"""Stands beside it when the disks are to be kept: then what bills is paused, not released."""


def orders(fleet: Fleet) -> Iterator[Release | Pause]:
    """Yield what is left to stop: a rent that came out of doubt after the kill, a pause that the market refused."""
    rests = {(rest.scope, rest.key): rest for rest in fleet.cooldowns if rest.until > fleet.now}
    halt = rests.get(EVERYTHING)
    if halt is None:
        return
    reason = Reason("ordered", f"all spending is stopped after {halt.code}")
    for held in fleet.leases:
        if not held.is_open or held.state is LeaseState.RELEASING:
            continue
        if KEEPS_DISKS not in rests:
            yield Release(held, reason)
        elif not words.is_down(held):
            yield Pause(held, reason)
