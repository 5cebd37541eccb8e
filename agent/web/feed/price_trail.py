"""The price trail of a lease: changes of its bid, and of floor and ask of its slice of the host.

Four queries read the trails of all leases.

1. A trail begins with the prices that were in force at its beginning, whenever they last changed. It begins at the rent
   or later.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agent.domain.market.price import PriceSample
from agent.domain.market.tenure import Tenure
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.ledger.reader import Reader
from agent.web.feed.slot_model import Price

Slice = tuple[str, str, int]
"""Market, host and number of GPUs."""
SPAN = timedelta(days=1)
MOST_ROWS = 2_000
"""The most rows of one query, for all leases together."""
MOST_POINTS = 48
"""The most points of one trail. A chart of a terminal's width has no room for more."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The price changes of one lease, oldest first, and its interruptions, newest first."""

    prices: Sequence[Price] = ()
    losses: Sequence[Event] = ()


NOTHING = Trail()
_UNSETTLED = frozenset({EventKind.INTENT_IN_DOUBT, EventKind.INTENT_REJECTED, EventKind.INTENT_VOID})
"""The bid of such an order was never seen in force."""
_TELL_A_BID = (
    EventKind.LEASE_OPENED,
    EventKind.LEASE_REASSIGNED,
    EventKind.LEASE_REBID,
    EventKind.LEASE_RUNNING,
    EventKind.LEASE_INTERRUPTED,
)


async def trails(
    leases: Sequence[Lease], reader: Reader, since: datetime, most: int = MOST_POINTS, until: datetime | None = None
) -> Mapping[str, Trail]:
    """Return the trail of each lease by its id, from `since` or from its rent, whichever is later.

    Points later than `until` are left out. A loss that ended a lease is the last point.
    """
    if not leases:
        return {}
    until = None if until is None else until + timedelta.resolution
    ids, hosts = [each.lease_id for each in leases], sorted({each.host_id for each in leases})
    happened = await reader.events(since=since, until=until, leases=ids, limit=MOST_ROWS)
    happened += await reader.last_events(ids, _TELL_A_BID, since)
    seen = await reader.prices(hosts=hosts, since=since, until=until, limit=MOST_ROWS)
    seen += await reader.last_prices(ids, since)
    bids: dict[str, list[Event]] = defaultdict(list)
    for event in happened:
        bids[event.lease_id].append(event)
    samples: dict[Slice, list[PriceSample]] = defaultdict(list)
    for sample in seen:
        samples[sample.market, sample.host_id, sample.gpus].append(sample)
    found = {}
    for each in leases:
        mine, start = samples[each.market, each.host_id, each.gpus], max(since, each.opened_at)
        found[each.lease_id] = _trail(each, bids[each.lease_id], mine, start, most)
    return found


def _trail(lease: Lease, happened: Sequence[Event], seen: Iterable[PriceSample], since: datetime, most: int) -> Trail:
    """Return the trail of one lease from its events and the samples of its slice, also from before `since`."""
    changes: list[tuple[datetime, str, float]] = []
    if lease.tenure is Tenure.INTERRUPTIBLE:
        settled = (each for each in happened if each.kind not in _UNSETTLED)
        changes += [(each.at, "bid", each.bid.dollars) for each in settled if each.bid is not None]
        changes.append((lease.bid_since or lease.opened_at, "bid", lease.bid.dollars))
    for sample in seen:
        found = (("floor", sample.floor), ("ask", sample.ask))
        changes += [(sample.at, name, rate.dollars) for name, rate in found if rate is not None]
    losses = [each for each in happened if each.kind is EventKind.LEASE_INTERRUPTED and each.at >= since]
    return Trail(_thinned(_steps(sorted(changes), since), most), losses)


def _steps(changes: Sequence[tuple[datetime, str, float]], since: datetime) -> list[Price]:
    """Return one point for each change, with the last known bid, floor and ask."""
    points: list[Price] = []
    known: dict[str, float] = {}
    for at, name, value in changes:
        known = {**known, name: value}
        point = Price(max(at, since), known.get("bid"), known.get("floor"), known.get("ask"))
        if points and points[-1].at == point.at:
            points.pop()
        points.append(point)
    return points


def _thinned(points: Sequence[Price], most: int) -> list[Price]:
    """Return at most `most` points, including the first and the last."""
    if len(points) <= most:
        return list(points)
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]
