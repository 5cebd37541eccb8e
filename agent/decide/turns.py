"""When the billing of a lease changed: as the market's own record dates it, else on the side that counts more.

Invariants:
1. Without a record, GPUs count from the look before the one that showed them billed, and up to the look that showed
   them no longer billed; what the record tells in the same cycle takes the place of that.
2. The state of the lease turns halfway between the two looks, so that the lengths of starts and stays are learned
   without that bias.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.decide import meter
from agent.domain.fleet import MarketView
from agent.domain.interruption import MarketEvent
from agent.domain.lease import Bills, Lease

BILLED_AFTER = {
    "outbid": Bills.DISK,
    "bid_lost": Bills.DISK,
    "stopped": Bills.DISK,
    "stopped_by_market": Bills.DISK,
    "offline": Bills.NOTHING,
    "started": Bills.GPU_AND_DISK,
    "resumed": Bills.GPU_AND_DISK,
}
"""What a lease bills after an event of the market's record, by the kind of the event."""
_BILLS_MORE = (Bills.NOTHING, Bills.DISK, Bills.GPU_AND_DISK)


@dataclass(frozen=True, slots=True)
class Turned:
    """The turns of the billing, in order, and when the lease came into its present state."""

    turns: tuple[meter.Turn, ...]
    at: datetime


def recorded(held: Lease, events: Iterable[MarketEvent], until: datetime) -> list[meter.Turn]:
    """Return the turns that the market's record tells of time that is not metered yet, oldest first."""
    return [
        (event.at, BILLED_AFTER[event.kind])
        for event in sorted(events, key=lambda event: event.at)
        if event.instance_id == held.instance_id
        and event.kind in BILLED_AFTER
        and held.accrued_until < event.at <= until
    ]


def turned(held: Lease, view: MarketView, bills: Bills, between: tuple[datetime, datetime], until: datetime) -> Turned:
    """Return the turns of a lease that bills `bills` now and was seen before and after the change, at `between`."""
    found = recorded(held, view.events, until)
    before = found[-1][1] if found else held.bills
    if before is bills:
        return Turned(tuple(found), found[-1][0] if found else between[1])
    first = max(between[0], held.accrued_until, *(at for at, _ in found[-1:]))
    last = max(between[1], first)
    is_more = _BILLS_MORE.index(bills) > _BILLS_MORE.index(before)
    found.append((first if is_more else last, bills))
    return Turned(tuple(found), first + max(last - first, timedelta()) / 2)
