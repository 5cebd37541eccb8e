"""Every request of our Mithril, held against the vendor's OpenAPI document; it may not be copied into here."""

from datetime import timedelta

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.markets import market_errors
from tests.markets import spot_bids
from tests.markets.scene import LABEL, asked
from tests.markets.spot_bids import BID, bid, machine, mithril_saying, page
from tests.markets.wire import Says, Seen
from tests.support import mithril_schema

pytestmark = pytest.mark.skipif(
    not mithril_schema.FILE.exists(),
    reason="GPUBID_RECORDED names no folder beside the vendor's OpenAPI document: no request was held against it",
)


def answers(seen: Seen) -> Says:
    """Answer as the project, with a bid that is preempted, and lists of two pages."""
    has_more = "next_cursor" not in seen.query and "name" not in seen.query and "bid_fid_in" not in seen.query
    if seen.path == "/v2/projects":
        return Says([{"fid": spot_bids.PROJECT}])
    if seen.path == "/v2/spot/bids" and seen.method == "GET":
        return page(bid(status="Preempting"), cursor="c1" if has_more else None)
    if seen.path == "/v2/instances":
        return page(machine(status="STATUS_PREEMPTING"), cursor="c1" if has_more else None)
    return Says(drop=True) if seen.method == "POST" else spot_bids.project(seen)


async def test_every_request_is_one_that_the_document_knows(clock: SteppedClock) -> None:
    async with mithril_saying(answers, clock, project="") as (mithril, wire):
        await mithril.account()
        await mithril.offers(asked(gpus=1))
        with pytest.raises(market_errors.Ambiguous):
            await mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL)
        await mithril.instances()
        await mithril.instance(BID)
        await mithril.charges(clock.now() - timedelta(days=1), clock.now())
        await mithril.events(clock.now() - timedelta(days=1))
        await mithril.rebid(BID, money.per_hour("2.60"))
        await mithril.pause(BID)
        await mithril.resume(BID)
        await mithril.release(BID)
        with pytest.raises(market_errors.MarketError):
            await mithril.spot_quotas()
    wrong = {
        f"{seen.method} {seen.target}": mithril_schema.asked(seen.method, seen.target, seen.body) for seen in wire.seen
    }
    assert {request: found for request, found in wrong.items() if found} == {}
    assert {seen.path for seen in wire.seen} == {
        "/v2/me",
        "/v2/projects",
        "/v2/instance-types",
        "/v2/instances",
        "/v2/instances/pricing/history",
        "/v2/instances/status/history",
        "/v2/pricing/current",
        "/v2/quotas",
        "/v2/spot/availability",
        "/v2/spot/bids",
        f"/v2/spot/bids/{BID}",
        f"/v2/spot/bids/{BID}/history",
    }
