"""What Mithril remembers and who pays: the bill, the histories of bids, projects and the account."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import MarketEventKind
from agent.domain.market.market_rules import PricePaid
from agent.markets import market_errors
from agent.markets.mithril.market import MithrilMarket
from agent.markets.port import Capability, Charge
from tests.markets import spot_bids
from tests.markets.scene import LABEL
from tests.markets.spot_bids import BID, bid, listing, machine, mithril_saying, page
from tests.markets.wire import Answers, Says, Seen


async def test_the_bill_is_what_the_machines_paid_by_period_and_day(clock: SteppedClock) -> None:
    since, until = datetime(2026, 11, 5, 20, 32, tzinfo=UTC), datetime(2026, 11, 6, 1, 2, tzinfo=UTC)
    async with mithril_saying(spot_bids.project, clock) as (mithril, wire):
        lines = await mithril.charges(since, until)
    day = datetime(2026, 11, 5, tzinfo=UTC)
    first = money.per_hour("0.90").over(1800) + money.per_hour("1.15").over(2 * 3600 + 58 * 60)
    assert list(lines) == [
        Charge(BID, first, day),
        Charge(BID, money.per_hour("1.15").over(3720), day + timedelta(days=1)),
    ]
    question = next(seen for seen in wire.seen if seen.path == "/v2/instances/pricing/history")
    assert (question.query["bid_fid"], question.query["start_time"]) == (BID, "2026-11-05T20:32:00Z")


@pytest.mark.parametrize(
    "event",
    [
        {"price_cents": float("nan"), "start_time": "2026-11-05T20:02:00Z", "end_time": None},
        {"price_cents": -3, "start_time": "2026-11-05T20:02:00Z", "end_time": None},
        {"price_cents": 3, "start_time": "x", "end_time": None},
        {"price_cents": 3, "start_time": "2026-11-05T20:02:00Z", "end_time": "never"},
        {"price_cents": 3},
        "junk",
    ],
)
async def test_a_bill_that_misses_a_line_is_no_bill(clock: SteppedClock, event: Any) -> None:
    histories = {"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": [event]}], "next_cursor": None}
    async with mithril_saying(listing(bid(), machines=[machine()], histories=histories), clock) as (mithril, _):
        with pytest.raises(market_errors.Malformed):
            await mithril.charges(clock.now() - timedelta(days=1), clock.now())


async def test_the_history_of_a_bid_says_when_it_won_and_lost(clock: SteppedClock) -> None:
    async with mithril_saying(spot_bids.project, clock) as (mithril, wire):
        assert list(await mithril.events(clock.now() - timedelta(hours=6))) == []
        await mithril.instances()
        events = await mithril.events(clock.now() - timedelta(hours=6))
        await mithril.instances()
        assert await mithril.events(clock.now() - timedelta(hours=6)) == events
        late = await mithril.events(datetime(2026, 11, 5, 21, tzinfo=UTC))
    assert [(event.kind, event.your_bid) for event in events] == [
        (MarketEventKind.STARTED, money.per_hour("2.5")),
        (MarketEventKind.BID_LOST, money.per_hour("2.6")),
    ]
    assert [event.kind for event in late] == [MarketEventKind.BID_LOST]
    assert sum(seen.path.endswith("/history") and "spot" in seen.path for seen in wire.seen) == 1
    assert Capability.EVENTS in MithrilMarket.capabilities(mithril)


async def test_a_loss_is_dated_at_the_end_of_its_notice(clock: SteppedClock) -> None:
    """The market may write down the beginning; nobody knows that the five minutes are free."""
    now = {"status": "Preempting"}

    def answers(seen: Seen) -> Says:
        if seen.path == f"/v2/spot/bids/{BID}/history":
            lost = {"timestamp": "2026-11-05T22:00:00Z", "event_type": "Preempted", "limit_price": "$2.50"}
            return Says({"bid_fid": BID, "events": [lost]})
        if seen.path == "/v2/instances/status/history":
            begun = {"timestamp": "2026-11-05T22:00:00Z", "status": "STATUS_PREEMPTING"}
            return Says({"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": [begun]}]})
        return listing(bid(status=now["status"]), machines=[])(seen)

    async with mithril_saying(answers, clock) as (mithril, _):
        await mithril.instances()
        assert list(await mithril.events(clock.now() - timedelta(hours=6))) == []
        clock.advance(320.0)
        now["status"] = "Open"
        (lost,) = await mithril.instances()
        (event,) = await mithril.events(clock.now() - timedelta(hours=6))
    assert (lost.state, lost.notice_at) == (InstanceState.PAUSED, None)
    assert (event.kind, event.at) == (MarketEventKind.BID_LOST, datetime(2026, 11, 5, 22, 5, tzinfo=UTC))


async def test_without_a_project_the_only_one_of_the_key_is_asked_about(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        return Says([{"fid": "proj_2", "name": "only"}]) if seen.path == "/v2/projects" else spot_bids.project(seen)

    async with mithril_saying(answers, clock, project="") as (mithril, wire):
        await mithril.instances()
        assert (await mithril.account()).account_id == "org_1/proj_2"
        assert await mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL) == BID
    assert sum(seen.path == "/v2/projects" for seen in wire.seen) == 1
    assert wire.seen[-1].json["project"] == "proj_2"


async def test_a_key_of_several_projects_can_list_all_but_orders_in_none(clock: SteppedClock) -> None:
    """A kill by label has no more than the key."""
    several = Says([{"fid": "proj_2"}, {"fid": "proj_3"}, "junk"])

    def answers(seen: Seen) -> Says:
        if seen.path == "/v2/projects":
            return several
        if seen.path == "/v2/spot/bids" and seen.method == "GET":
            return page(bid(fid=f"bid_of_{seen.query['project']}", instances=[], project=seen.query["project"]))
        return page() if seen.path == "/v2/instances" else spot_bids.project(seen)

    async with mithril_saying(answers, clock, project="") as (mithril, wire):
        assert [row.instance_id for row in await mithril.instances()] == ["bid_of_proj_2", "bid_of_proj_3"]
        with pytest.raises(market_errors.Unreachable, match="2 projects"):
            await mithril.rent(spot_bids.OFFERED, spot_bids.ORDER, LABEL)
    assert {seen.method for seen in wire.seen} == {"GET"}


@pytest.mark.parametrize("shown", [[], ["junk"], [{"name": "no id"}]])
async def test_no_project_is_no_empty_listing(clock: SteppedClock, shown: Any) -> None:
    answers: Answers = lambda seen: Says(shown) if seen.path == "/v2/projects" else spot_bids.project(seen)  # noqa: E731
    async with mithril_saying(answers, clock, project="") as (mithril, _):
        with pytest.raises(market_errors.Malformed, match="no project"):
            await mithril.instances()


async def test_the_account_is_the_organisation_and_its_project_and_has_no_credit(clock: SteppedClock) -> None:
    async with mithril_saying(spot_bids.project, clock) as (mithril, _):
        account = await mithril.account()
        assert mithril.server_time() == account.market_time == datetime(2026, 11, 5, 22, tzinfo=UTC)
    assert (account.account_id, account.credit) == ("org_1/proj_1", None)
    assert Capability.CREDIT not in mithril.capabilities()
    assert await mithril.logs(BID, 10) == ()
    assert mithril.rules().price_paid is PricePaid.SECOND_PRICE
