"""What rests now: offers and hosts refused lately, and the places that an operator took off the market."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from agent.domain.fleet import Fleet
from agent.domain.record import hold
from agent.domain.record.cooldown import Cooldown
from agent.domain.record.hold import OFF_THE_MARKET, Holds, TargetKind

OFFER_TAKEN = timedelta(minutes=3)
"""After the market says that an offer was just taken: until its listing shows that."""
UNDERBID = timedelta(minutes=2)
"""After a bid was too low: the quoted floor is stale, and a new quote is needed."""
REFUSALS = "underbid"
"""The scope under which refusals of one offer are counted: a quote may stay stale for hours."""
REFUSALS_KEPT = timedelta(hours=1)
UNDERBID_GROWS = 2
"""Each further refusal makes the offer's cooldown this many times longer, up to `UNDERBID_MOST`."""
UNDERBID_MOST = timedelta(minutes=10)
START_FAILED = timedelta(hours=2)
"""After a host could not start the container: the cause rarely disappears sooner."""
HOST_LOST = timedelta(hours=1)
"""After a host went offline, vanished or ended the container."""
RAN = "ran"
"""The scope of the marks that a slot ran on a lease, under "SLOT@LEASE": they limit its moves a day."""
RAN_COUNTS = timedelta(days=1)
FULL = "full"
"""The scope of the cooldown, under a lease's id, of a lease that cannot start on its host."""
HOST_FULL = timedelta(minutes=15)
"""After a host had no free GPU for a paused instance: other renters stay for hours, few leave at once. Assumed."""
STARTED = "started"
"""The scope of the mark, under a lease's id, of a start that the market confirmed and that does not run yet."""
STARTED_KEPT = timedelta(hours=1)
"""After this long without an effect the start is ordered again."""
START_PATIENCE = timedelta(minutes=15)
"""How long a confirmed start of a paused lease may wait for its GPUs; then the lease counts as `FULL`. Assumed."""
HOST_LEFT = timedelta(minutes=30)
"""After we left a host for another: coming straight back pays the loading twice."""
_PLACES = frozenset({TargetKind.HOST, TargetKind.OWNER, TargetKind.MARKET})


def after_refusals(count: int) -> timedelta:
    """Return the cooldown of an offer that refused this many bids as too low."""
    return min(UNDERBID * int(UNDERBID_GROWS ** min(count - 1, 8)), UNDERBID_MOST)


@dataclass(frozen=True, slots=True)
class InForce:
    """What holds and rests at one instant."""

    holds: Holds = field(default_factory=dict)
    cooling: Mapping[str, str] = field(default_factory=dict)
    """What rests, as {"scope:key": why}; a place that an operator took off the market rests too."""


def in_force(fleet: Fleet) -> InForce:
    """Return what holds and rests for a fleet."""
    holds = hold.in_force(fleet.holds, fleet.now)
    return InForce(holds, cooling(fleet.cooldowns, holds, fleet.now))


def cooling(cooldowns: Iterable[Cooldown], holds: Holds, now: datetime) -> Mapping[str, str]:
    """Return {"scope:key": why} of what still rests at `now`."""
    found = {f"{rest.scope}:{rest.key}": rest.code for rest in cooldowns if rest.until > now}
    for word in OFF_THE_MARKET:
        for (held_by, target), given in holds.items():
            if held_by is word and target.kind in _PLACES:
                found.setdefault(str(target), f"a {word} by {given.ground}")
    return found
