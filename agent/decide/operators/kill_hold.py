"""The endings that a kill still demands: a kill holds until it is lifted, whatever appears later."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from agent.decide.operators import operator_holds
from agent.domain.fleet import Fleet
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.lease import LeaseState
from agent.domain.work.decision import Pause, Reason, Release

EVERYTHING = ("fleet", "all")
"""The scope of a kill: nothing is rented, raised or started."""
KEEPS_DISKS = ("fleet", "disks")
"""A mark beside it to keep the disks: leases are paused, not released."""

FOR_GOOD = timedelta(days=3650)
"""How long a kill holds: until it is lifted."""


def since(rest: Cooldown) -> datetime:
    """Return when the kill of a mark was given."""
    return rest.until - FOR_GOOD


def until(cooldowns: Iterable[Cooldown], now: datetime, *, keep_disks: bool) -> datetime:
    """Return the end of a kill that is given now; the same kill, given again, keeps the time of the first."""
    rests = {(rest.scope, rest.key): rest for rest in cooldowns if rest.until > now}
    given = rests.get(EVERYTHING)
    is_the_same = given is not None and (KEEPS_DISKS in rests) is keep_disks
    return given.until if given is not None and is_the_same else now + FOR_GOOD


def is_on(cooldowns: Iterable[Cooldown], now: datetime) -> bool:
    """Return whether a kill of everything is in force."""
    return any((rest.scope, rest.key) == EVERYTHING and rest.until > now for rest in cooldowns)


def orders(fleet: Fleet) -> Iterator[Release | Pause]:
    """Yield the leases left to end: a rent that came out of doubt after the kill, a pause that the market refused."""
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
        elif not operator_holds.is_down(held):
            yield Pause(held, reason)
