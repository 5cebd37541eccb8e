"""Cooldowns of refused offers and hosts, from facts of the ledger and now."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from agent.decide.operators import operator_holds
from agent.domain.record.cooldown import Cooldown

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


def after_refusals(count: int) -> timedelta:
    """Return the cooldown of an offer that refused this many bids as too low."""
    return min(UNDERBID * int(UNDERBID_GROWS ** min(count - 1, 8)), UNDERBID_MOST)


def cooling(cooldowns: Iterable[Cooldown], now: datetime) -> Mapping[str, str]:
    """Return {"scope:key": why} of the cooldowns at `now`; a place that a person locked is there under its own name."""
    found = {f"{rest.scope}:{rest.key}": rest.code for rest in cooldowns if rest.until > now}
    for verb in operator_holds.OFF_THE_MARKET:
        for key, who in list(found.items()):
            if key.startswith((f"{verb}:host:", f"{verb}:owner:", f"{verb}:market:")):
                found.setdefault(key.removeprefix(f"{verb}:"), f"a {verb} by {who}")
    return found
