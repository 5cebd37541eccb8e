"""What Mithril remembers and who pays: the bill, the histories of bids, projects and the account."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.interruption import MarketEventKind
from agent.domain.market.market_rules import PricePaid
from agent.domain.market.price import PaidBill, PaidPeriod
from agent.markets import market_errors
from agent.markets.mithril import histories
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


def paid(*periods: tuple[int, str, str | None]) -> dict[str, Any]:
    events = [{"price_cents": cents, "start_time": start, "end_time": end} for cents, start, end in periods]
    return {"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": events}], "next_cursor": None}


async def test_a_listing_shows_what_a_bid_paid_until_its_bill_has_ended(clock: SteppedClock) -> None:
    """The bill of a bid that lost its machine is read at once, again while it goes on, and then no more."""
    shown: dict[str, Any] = {"status": "Allocated", "end": None}

    def answers(seen: Seen) -> Says:
        bills = paid((90, "2026-11-05T20:02:00Z", "2026-11-05T21:02:00Z"), (115, "2026-11-05T21:02:00Z", shown["end"]))
        return listing(bid(status=shown["status"]), machines=[], histories=bills)(seen)

    async with mithril_saying(answers, clock) as (mithril, wire):
        asked = []
        for seconds, status, end in (
            (0, "Allocated", None),
            (60, "Allocated", None),
            (10, "Open", None),
            (60, "Open", "2026-11-05T22:01:00Z"),
            (60, "Open", "2026-11-05T22:01:00Z"),
            (240, "Open", "2026-11-05T22:01:00Z"),
        ):
            clock.advance(seconds)
            shown |= {"status": status, "end": end}
            (row,) = await mithril.instances()
            asked.append(sum(seen.path == "/v2/instances/pricing/history" for seen in wire.seen))
        assert asked == [1, 1, 2, 2, 3, 3]
    first = PaidPeriod(money.per_hour("0.90"), datetime(2026, 11, 5, 20, 2, tzinfo=UTC), moment("21:02"))
    last = PaidPeriod(money.per_hour("1.15"), moment("21:02"), moment("22:01"))
    assert row.bill == PaidBill((first, last), clock.now() - timedelta(seconds=240))


class SleepingMachine(SteppedClock):
    """A clock whose monotonic seconds stand still while the machine sleeps, as Linux has it."""

    slept = 0.0

    def monotonic(self) -> float:
        return super().monotonic() - self.slept


@pytest.mark.parametrize("is_asleep", [False, True])
async def test_after_a_gap_the_bill_of_a_waiting_bid_is_read_again(clock: SteppedClock, *, is_asleep: bool) -> None:
    """It may have won a machine and lost it, and both looks show that it waits."""
    bills = {"periods": [(90, "2026-11-05T20:02:00Z", "2026-11-05T21:02:00Z")]}

    def answers(seen: Seen) -> Says:
        return listing(bid(status="Open"), machines=[], histories=paid(*bills["periods"]))(seen)

    machine_clock = SleepingMachine(clock.now())
    async with mithril_saying(answers, machine_clock) as (mithril, wire):
        await mithril.instances()
        bills["periods"].append((7, "2026-11-05T22:04:00Z", "2026-11-05T22:10:00Z"))
        machine_clock.advance(histories.UNSEEN_SECONDS - 1)
        (near,) = await mithril.instances()
        machine_clock.advance(histories.UNSEEN_SECONDS)
        machine_clock.slept = histories.UNSEEN_SECONDS if is_asleep else 0.0
        (far,) = await mithril.instances()
        asked = sum(seen.path == "/v2/instances/pricing/history" for seen in wire.seen)
    assert [row.bill is not None and len(row.bill.periods) for row in (near, far)] == [1, 2]
    assert asked == 2


def moment(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-11-05T{text}:00+00:00")


@pytest.mark.parametrize(
    ("status", "periods", "until"),
    [
        ("Allocated", [(90, "2026-11-05T20:02:00Z", "2026-11-05T21:02:00Z")], moment("21:02")),
        ("Preempting", [(90, "2026-11-05T20:02:00Z", "2026-11-05T21:02:00Z")], None),
        ("Open", [], None),
    ],
)
async def test_a_bill_without_the_present_machine_is_complete_up_to_its_last_end(
    clock: SteppedClock, status: str, periods: list[Any], until: datetime | None
) -> None:
    async with mithril_saying(listing(bid(status=status), histories=paid(*periods)), clock) as (mithril, _):
        (row,) = await mithril.instances()
    assert row.bill is not None
    assert row.bill.until == (until or clock.now())
    empty = listing(bid(), histories=paid())
    async with mithril_saying(empty, clock) as (mithril, _):
        (row,) = await mithril.instances()
    assert row.bill is None, "a machine runs, and the bill knows of none"


@pytest.mark.parametrize(
    ("behind", "until"), [(timedelta(minutes=3), "22:00"), (timedelta(days=1), "22:01")], ids=["kept", "read again"]
)
async def test_a_bill_stays_as_old_as_it_is_when_our_clock_is_put_right(behind: timedelta, until: str) -> None:
    """By a clock that was behind, a dark stretch before would count at the present price alone."""

    class Behind(SteppedClock):
        off = -behind

        def now(self) -> datetime:
            return super().now() + self.off

    clock = Behind(datetime(2026, 11, 5, 22, tzinfo=UTC))
    async with mithril_saying(spot_bids.project, clock) as (mithril, _):
        await mithril.instances()
        clock.off = timedelta()
        clock.advance(60.0)
        (row,) = await mithril.instances()
    assert row.bill is not None
    assert row.bill.until == moment(until)


async def test_the_bill_says_whether_a_bid_in_an_unknown_state_is_charged(clock: SteppedClock) -> None:
    now = {"status": "Nobody knows"}

    def answers(seen: Seen) -> Says:
        return listing(bid(status=now["status"], instances=[]), machines=[], histories=paid())(seen)

    async with mithril_saying(answers, clock) as (mithril, _):
        (row,) = await mithril.instances()
        assert (row.state, row.bill) == (InstanceState.UNKNOWN, PaidBill((), clock.now()))
        clock.advance(15.0)
        now["status"] = "Open"
        (row,) = await mithril.instances()
    assert (row.state, row.bill) == (InstanceState.PENDING, PaidBill((), clock.now())), (
        "read up to the end of the doubt"
    )


async def test_a_long_bill_shows_its_youngest_periods(clock: SteppedClock) -> None:
    hours = [f"2026-11-05T{number // 60:02}:{number % 60:02}:00Z" for number in range(400)]
    periods = [(90 + number % 2, start, end) for number, (start, end) in enumerate(pairwise(hours))]
    async with mithril_saying(listing(bid(status="Open"), histories=paid(*periods)), clock) as (mithril, _):
        (row,) = await mithril.instances()
    assert row.bill is not None
    assert (len(row.bill.periods), row.bill.since) == (histories.MOST_PERIODS, moment("01:39"))


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
