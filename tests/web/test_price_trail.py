"""A lease's trail: it has bid, floor and ask from the rent on, whenever they last changed."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from agent.clock import SteppedClock
from agent.domain.market.price import PriceSample
from agent.domain.record.event import Event
from agent.domain.record.event_kind import EventKind
from agent.domain.record.lease import Lease
from agent.ledger.store import Ledger
from agent.web.feed import price_trail
from agent.web.feed.slot_model import Price
from tests.support.builders import NOW, ago, lease, per_hour

DAY_AGO = NOW - price_trail.SPAN


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    opened = await Ledger.open(tmp_path / "ledger.sqlite", clock=SteppedClock(NOW))
    yield opened
    await opened.close()


def sample(of: Lease, back: timedelta, floor: str, ask: str) -> PriceSample:
    return PriceSample(NOW - back, of.market, of.host_id, of.gpu, of.gpus, per_hour(ask), per_hour(floor))


def event(of: Lease, kind: EventKind, back: timedelta, bid: str) -> Event:
    return Event(NOW - back, kind, lease_id=of.lease_id, bid=per_hour(bid))


async def prices(ledger: Ledger, mine: Lease, *samples: PriceSample, happened: tuple[Event, ...] = ()) -> list[Price]:
    """Record a lease, prices and events; return the trail of the last day."""
    async with ledger.transaction() as tx:
        tx.open_lease(mine)
        for one in happened:
            tx.append_event(one)
    for price in samples:
        async with ledger.transaction() as tx:
            tx.observe_prices([price])
    found = await price_trail.trails([mine], await ledger.reader(), DAY_AGO)
    return list(found[mine.lease_id].prices)


async def test_a_lease_has_the_prices_of_before_its_rent_from_its_rent_on(ledger: Ledger) -> None:
    mine = lease(opened_at=ago(hours=2), bid_since=None, gpu_rate=per_hour("0.22"))
    earlier = sample(mine, timedelta(hours=9), "0.15", "0.50"), sample(mine, timedelta(hours=5), "0.18", "0.40")
    later = sample(mine, timedelta(hours=1), "0.20", "0.40")
    assert await prices(ledger, mine, *earlier, later) == [
        Price(ago(hours=2), 0.22, 0.18, 0.40),
        Price(ago(hours=1), 0.22, 0.20, 0.40),
    ]


async def test_what_changed_last_before_the_day_shown_counts_from_its_beginning(ledger: Ledger) -> None:
    mine = lease(opened_at=ago(days=5), bid_since=ago(hours=3), gpu_rate=per_hour("0.25"))
    old, other = sample(mine, timedelta(days=3), "0.18", "0.40"), lease(2, host_id="another")
    opened = event(mine, EventKind.LEASE_OPENED, timedelta(days=5), "0.22")
    assert await prices(ledger, mine, sample(other, timedelta(days=2), "9", "9"), old, happened=(opened,)) == [
        Price(DAY_AGO, 0.22, 0.18, 0.40),
        Price(ago(hours=3), 0.25, 0.18, 0.40),
    ]


async def test_a_bid_that_was_never_in_force_is_not_drawn(ledger: Ledger) -> None:
    mine = lease(opened_at=ago(hours=4), bid_since=None, gpu_rate=per_hour("0.22"))
    kinds = (EventKind.INTENT_REJECTED, EventKind.INTENT_IN_DOUBT, EventKind.INTENT_VOID)
    refused = tuple(event(mine, kind, timedelta(hours=1), "0.90") for kind in kinds)
    assert await prices(ledger, mine, happened=refused) == [Price(ago(hours=4), 0.22, None, None)]
