"""Bids of Mithril with their machines as instances: states, prices paid, notices, and whole listings or none."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import Instance, InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import labels, market_errors
from agent.markets.mithril import client, parse, rows, states
from tests.markets import spot_bids
from tests.markets.scene import asked
from tests.markets.spot_bids import BID, bid, listing, machine, mithril_saying, page, refused
from tests.markets.wire import Answers, Says, Seen

DISK_PER_HOUR = money.UsdPerHour(round(spot_bids.DISK_MICROS * 40 / 720))
PENDING, LOADING, RUNNING = InstanceState.PENDING, InstanceState.LOADING, InstanceState.RUNNING
PAUSED, FAILED, UNKNOWN = InstanceState.PAUSED, InstanceState.FAILED, InstanceState.UNKNOWN


async def one(clock: SteppedClock, answers: Answers) -> Instance:
    async with mithril_saying(answers, clock) as (mithril, _):
        (instance,) = await mithril.instances()
    return instance


async def test_a_running_bid_shows_what_it_pays_and_its_limit_apart(clock: SteppedClock) -> None:
    async with mithril_saying(spot_bids.project, clock) as (mithril, wire):
        (row,) = await mithril.instances()
        assert await mithril.instance(BID) == row
    assert row.price_since == datetime(2026, 11, 5, 21, 2, tzinfo=UTC)
    assert (row.instance_id, row.host_id, row.state, row.tenure) == (
        BID,
        spot_bids.HOST,
        RUNNING,
        Tenure.INTERRUPTIBLE,
    )
    assert (row.gpu_rate, row.limit, row.bid) == (money.per_hour("1.15"), money.per_hour("2.5"), money.per_hour("2.5"))
    assert (row.gpu, row.gpus, row.disk_gb, row.unread) == ("A100 SXM4", 1, 40.0, frozenset())
    assert (row.address, row.ports) == ("203.0.113.7:22", "8000/tcp=203.0.113.7:8000 9000/tcp=203.0.113.7:9000")
    assert row.created_at == datetime(2026, 11, 5, 20, tzinfo=UTC)
    assert row.billing_rate == row.gpu_rate + row.disk_rate
    label = labels.parse(row.label)
    assert label is not None
    assert (label.fleet_id, label.slot.workload, label.slot.index) == ("0123456789ab", "", 0)
    assert all(seen.query["project"] == spot_bids.PROJECT for seen in wire.seen if seen.path in spot_bids.LISTS)


@pytest.mark.parametrize(
    ("status", "instances", "machine_status", "state", "bills"),
    [
        ("Open", [], None, PENDING, False),
        ("Open", ["inst_1"], None, PAUSED, False),
        ("Open", [], "STATUS_PREEMPTED", PAUSED, False),
        ("Open", ["inst_1"], "STATUS_STOPPING", PAUSED, False),
        ("Open", ["inst_1"], "STATUS_RUNNING", UNKNOWN, True),
        ("Open", ["inst_1"], "STATUS_PREEMPTING", PAUSED, True),
        ("Open", ["inst_1"], "STATUS_ERROR", PAUSED, False),
        ("Allocated", [], None, LOADING, True),
        ("Allocated", ["inst_1"], "STATUS_NEW", LOADING, True),
        ("Allocated", ["inst_1"], "STATUS_CONFIRMED", LOADING, True),
        ("Allocated", ["inst_1"], "STATUS_INITIALIZING", LOADING, True),
        ("Allocated", ["inst_1"], "STATUS_STARTING", LOADING, True),
        ("Allocated", ["inst_1"], "STATUS_RUNNING", RUNNING, True),
        ("Allocated", ["inst_1"], "STATUS_RELOCATING", UNKNOWN, True),
        ("Allocated", ["inst_1"], "STATUS_ERROR", FAILED, True),
        ("Allocated", ["inst_1"], "STATUS_OF_NEXT_YEAR", UNKNOWN, True),
        ("Preempting", ["inst_1"], "STATUS_PREEMPTING", RUNNING, True),
        ("Preempting", ["inst_1"], "STATUS_RUNNING", RUNNING, True),
        ("Preempting", ["inst_1"], "STATUS_PREEMPTED", PAUSED, False),
        ("Paused", [], None, PAUSED, False),
        ("Paused", ["inst_1"], "STATUS_PAUSED", PAUSED, False),
        ("Paused", ["inst_1"], "STATUS_RUNNING", UNKNOWN, True),
        ("Allocated", ["inst_1"], "STATUS_STOPPING", UNKNOWN, True),
        ("Allocated", ["inst_1"], "STATUS_PREEMPTED", LOADING, True),
        ("Paused", ["inst_1"], "STATUS_STOPPING", PAUSED, False),
        ("Relocating", ["inst_1"], "STATUS_RUNNING", UNKNOWN, True),
        (None, ["inst_1"], "STATUS_RUNNING", UNKNOWN, True),
        (7, ["inst_1"], None, UNKNOWN, True),
    ],
)
async def test_the_states(
    clock: SteppedClock,
    status: Any,
    instances: list[str],
    machine_status: str | None,
    state: InstanceState,
    bills: bool,
) -> None:
    machines = [machine(status=machine_status)] if machine_status else []
    row = await one(clock, listing(bid(status=status, instances=instances), machines=machines))
    assert (row.state, row.bills_gpu) == (state, bills)
    assert row.is_wanted_running == (status != "Paused")


async def test_a_bid_that_waits_costs_nothing_and_one_that_lost_its_machine_its_disk(clock: SteppedClock) -> None:
    unbilled: Any = {"instances": [], "next_cursor": None}
    waits = await one(clock, listing(bid(status="Open", instances=[]), histories=unbilled))
    assert (waits.billing_rate, waits.gpu_rate, waits.limit) == (
        money.FREE,
        money.per_hour("2.5"),
        money.per_hour("2.5"),
    )
    lost = await one(clock, listing(bid(status="Open"), machines=[machine(status="STATUS_PREEMPTED")]))
    assert (lost.billing_rate, lost.disk_rate) == (DISK_PER_HOUR, DISK_PER_HOUR)
    parked = await one(clock, listing(bid(status="Paused", instances=[])))
    assert parked.billing_rate == money.FREE, "a bid that was paused before it ever won has no disk"
    async with mithril_saying(listing(bid(status="Open"), machines=[]), clock, disk_micros=None) as (mithril, _):
        (unpriced,) = await mithril.instances()
    assert (unpriced.unread, unpriced.disk_rate) == (frozenset({"disk_rate"}), money.FREE)


async def test_the_price_of_a_bid_that_waits_is_at_most_its_limit(clock: SteppedClock) -> None:
    cheap = listing(bid(status="Open", instances=[], limit_price="$0.40"))
    async with mithril_saying(cheap, clock) as (mithril, _):
        await mithril.offers(asked(gpus=1))
        (row,) = await mithril.instances()
    assert (row.gpu_rate, row.limit, row.unread) == (money.per_hour("0.4"), money.per_hour("0.4"), frozenset())


async def test_the_newest_machine_counts(clock: SteppedClock) -> None:
    machines = [
        machine(fid="inst_1", status="STATUS_PREEMPTED", created_at="2026-11-05T20:02:00Z", ssh_destination="a"),
        machine(fid="inst_2", status="STATUS_RUNNING", created_at="2026-11-05T21:02:00Z"),
        machine(fid="inst_3", status="STATUS_REPLACED", created_at="2026-11-05T21:03:00Z"),
    ]
    assert (await one(clock, listing(bid(), machines=machines))).state is RUNNING


async def test_a_preempted_bid_runs_until_its_notice_is_over(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        if seen.path == "/v2/instances/status/history":
            events = [
                {"timestamp": "2026-11-05T20:03:00Z", "status": "STATUS_RUNNING"},
                {"timestamp": "2026-11-05T21:59:00Z", "status": "STATUS_PREEMPTING"},
                {"timestamp": "2026-11-09T21:59:00Z", "status": "STATUS_PREEMPTING"},
                {"timestamp": None, "status": 7},
                "junk",
            ]
            return Says({"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": events}]})
        return listing(bid(status="Preempting"), machines=[machine(status="STATUS_PREEMPTING")])(seen)

    async with mithril_saying(answers, clock) as (mithril, wire):
        (row,) = await mithril.instances()
        clock.advance(30.0)
        (later,) = await mithril.instances()
    assert (row.state, row.notice_at) == (RUNNING, datetime(2026, 11, 5, 22, 4, tzinfo=UTC))
    assert later.notice_at == row.notice_at
    assert sum(seen.path == "/v2/instances/status/history" for seen in wire.seen) == 1


@pytest.mark.parametrize(
    ("periods", "rate", "is_unread"),
    [([("90", None)], "0.90", False), ([("90", "2026-11-05T21:59:00Z")], "0", False), ([], "0", True)],
    ids=["billed", "no longer billed", "no bill yet"],
)
async def test_the_minutes_of_a_notice_pay_what_the_bill_says_and_never_the_price_of_those_who_won(
    clock: SteppedClock, periods: list[tuple[str, str | None]], rate: str, *, is_unread: bool
) -> None:
    start = "2026-11-05T20:02:00Z"
    events = [{"price_cents": int(cents), "start_time": start, "end_time": end} for cents, end in periods]
    paid = {"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": events}], "next_cursor": None}
    machines = [machine(status="STATUS_PREEMPTING")]
    row = await one(clock, listing(bid(status="Preempting"), machines=machines, histories=paid))
    assert (row.gpu_rate, "gpu_rate" in row.unread) == (money.per_hour(rate), is_unread)


async def test_a_bid_with_the_time_of_its_end_has_ended_whatever_word_the_market_has_for_it(
    clock: SteppedClock,
) -> None:
    ended = bid(fid="bid_over", status="bogus", deactivated_at="2026-11-05T21:00:00Z")
    odd = bid(fid="bid_odd", status="bogus")
    async with mithril_saying(listing(ended, odd, machines=[]), clock) as (mithril, _):
        assert [(row.instance_id, row.state) for row in await mithril.instances()] == [("bid_odd", UNKNOWN)]


@pytest.mark.parametrize("word", ["Open", "Paused", "Allocated", "Preempting"])
@pytest.mark.parametrize(
    ("looks", "machines", "ended_at", "is_listed"),
    [
        (2, [], "2026-11-05T21:00:00Z", False),
        (1, [], "2026-11-05T21:00:00Z", True),
        (2, [machine()], "2026-11-05T21:00:00Z", True),
        (2, [], None, True),
    ],
    ids=["ended", "only one look at the end", "it has a machine", "the end was a wrong word"],
)
async def test_one_wrong_word_revives_no_bid_whose_end_two_listings_showed(
    clock: SteppedClock, word: str, looks: int, machines: list[Any], ended_at: str | None, *, is_listed: bool
) -> None:
    ended = listing(bid(status="Terminated", instances=[], deactivated_at=ended_at), machines=[])
    said = [ended]

    def answers(seen: Seen) -> Says:
        return said[-1](seen)

    async with mithril_saying(answers, clock) as (mithril, _):
        for _ in range(looks):
            assert await mithril.instances() == []
        said.append(listing(bid(status=word, instances=[], deactivated_at=ended_at), machines=machines))
        assert [row.instance_id for row in await mithril.instances()] == [BID] * is_listed


async def test_no_machine_counts_at_more_than_its_limit_where_only_its_pool_tells_a_price(clock: SteppedClock) -> None:
    unpaid: dict[str, Any] = {"instances": [], "next_cursor": None}
    cheap = bid(limit_price="$0.40")
    row = await one(clock, listing(cheap, machines=[machine()], histories=unpaid))
    assert row.gpu_rate == money.per_hour("0.40")


@pytest.mark.parametrize("machine_status", ["STATUS_RUNNING", "STATUS_PREEMPTING"])
async def test_the_word_of_a_bid_alone_is_no_notice_if_its_machines_history_has_none(
    clock: SteppedClock, machine_status: str
) -> None:
    history: list[dict[str, Any]] = [{"timestamp": "2026-11-05T20:03:00Z", "status": "STATUS_RUNNING"}]

    def answers(seen: Seen) -> Says:
        if seen.path == "/v2/instances/status/history":
            return Says({"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": history}]})
        return listing(bid(status="Preempting"), machines=[machine(status=machine_status)])(seen)

    async with mithril_saying(answers, clock) as (mithril, _):
        (row,) = await mithril.instances()
        assert (row.state, row.notice_at is None) == (RUNNING, machine_status == "STATUS_RUNNING")
        at = clock.now()
        history.append({"timestamp": f"{at:%Y-%m-%dT%H:%M:%SZ}", "status": "STATUS_PREEMPTING"})
        (later,) = await mithril.instances()
    assert later.notice_at is not None


async def test_without_its_history_a_notice_counts_from_the_first_look(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        if seen.path == "/v2/instances/status/history":
            return refused(404, "Not Found")
        return listing(bid(status="Preempting"), machines=[machine(status="STATUS_PREEMPTING")])(seen)

    began = clock.now()
    row = await one(clock, answers)
    assert began + timedelta(minutes=5) <= (row.notice_at or began) <= clock.now() + timedelta(minutes=5)


async def test_unreadable_figures_are_unread_and_the_bid_stays(clock: SteppedClock) -> None:
    broken = bid(
        limit_price=float("nan"),
        instance_quantity="many",
        region="no region",
        launch_specification={"startup_script": 5},
        created_at="yesterday",
        name="x" * 400 + "\u202e",
    )
    row = await one(clock, listing(broken, machines=[machine()], histories={"instances": [{"events": "none"}]}))
    assert row.unread == frozenset({"limit", "gpu_rate", "host_id", "disk_gb", "disk_rate"})
    assert (row.instance_id, row.state, row.created_at, len(row.label)) == (BID, RUNNING, None, labels.MAX_LABEL)


async def test_a_kind_that_nobody_knows_leaves_the_gpus_unread(clock: SteppedClock) -> None:
    row = await one(clock, listing(bid(instance_type="it_new"), machines=[machine()]))
    assert (row.unread, row.gpus, row.gpu) == (frozenset({"gpus"}), 0, "")


@pytest.mark.parametrize("broken", ["/v2/instance-types", "/v2/pricing/current", "/v2/instances/pricing/history"])
async def test_a_listing_waits_for_no_catalogue_and_no_history(clock: SteppedClock, broken: str) -> None:
    """Whatever has to end is ended by the listing."""

    def answers(seen: Seen) -> Says:
        if seen.path in {broken, "/v2/instances/pricing/history"}:
            return Says(b"", 503)
        return spot_bids.project(seen)

    row = await one(clock, answers)
    lost = {"/v2/instance-types": "gpus", "/v2/pricing/current": "gpu_rate"}.get(broken)
    assert (row.instance_id, row.state, row.unread) == (BID, RUNNING, frozenset({lost} if lost else ()))


async def test_without_a_history_of_prices_the_pool_says_what_is_paid(clock: SteppedClock) -> None:
    ended = {"instances": [{"instance_fid": "inst_1", "bid_fid": BID, "events": []}], "next_cursor": None}
    row = await one(clock, listing(bid(), machines=[machine()], histories=ended))
    assert (row.gpu_rate, row.unread) == (money.per_hour(1), frozenset())


async def test_an_ended_bid_is_listed_no_more_and_its_own_answer_says_so(clock: SteppedClock) -> None:
    def answers(seen: Seen) -> Says:
        if seen.path == f"/v2/spot/bids/{BID}":
            return Says(bid(status="Terminated"))
        return listing(bid(status="Terminated"), machines=[])(seen)

    async with mithril_saying(answers, clock) as (mithril, _):
        assert list(await mithril.instances()) == []
        with pytest.raises(market_errors.NotFound):
            await mithril.instance(BID)


async def test_only_the_markets_own_word_says_that_there_is_no_bid(clock: SteppedClock) -> None:
    for answer, error in (
        (refused(404, "Bid not found"), market_errors.NotFound),
        (refused(404, "Not Found"), market_errors.Unavailable),
        (Says(b"<html>404</html>", 404), market_errors.Unavailable),
        (Says(b"", 404), market_errors.Unavailable),
        (refused(422, [{"loc": ["path"], "msg": "bad id", "type": "x"}]), market_errors.Malformed),
    ):
        async with mithril_saying(answer, clock) as (mithril, _):
            with pytest.raises(error):
                await mithril.instance("bid_other")


def paged(pages: dict[str, Says], machines: Any = ()) -> Answers:
    def answers(seen: Seen) -> Says:
        if seen.path == "/v2/spot/bids":
            return pages[seen.query.get("next_cursor", "")]
        return page(*machines) if seen.path == "/v2/instances" else spot_bids.project(seen)

    return answers


async def test_a_listing_of_several_pages_is_whole(clock: SteppedClock) -> None:
    pages = {
        "": page(bid(), cursor="c1"),
        "c1": page(bid(fid="bid_2", name="theirs"), cursor=2),
        "2": page(bid(fid="b")),
    }
    async with mithril_saying(paged(pages), clock) as (mithril, _):
        assert [row.instance_id for row in await mithril.instances()] == [BID, "bid_2", "b"]


@pytest.mark.parametrize(
    "pages",
    [
        {"": page(bid(), cursor="c1"), "c1": page(bid(limit_price="$9.00"))},
        {"": page(bid(), cursor="c1"), "c1": page(bid(fid="b"), cursor="c1")},
        {"": page(bid(), cursor="c1"), "c1": page(cursor="c2"), "c2": page(bid(fid="b"))},
        {"": page(bid(), cursor={"at": 1})},
        {"": page(bid(), cursor=True)},
        {"": Says({"next_cursor": None})},
        {"": Says({"data": None, "next_cursor": None})},
        {"": page(bid(fid=None))},
        {"": page(bid(), bid(fid="bid\n2"))},
        {"": page("no bid")},
        {"": Says(b"[]")},
        {"": Says(b'{"data": [')},
    ],
)
async def test_a_part_of_a_listing_is_no_listing(clock: SteppedClock, pages: dict[str, Says]) -> None:
    async with mithril_saying(paged(pages), clock) as (mithril, _):
        with pytest.raises(market_errors.Malformed):
            await mithril.instances()


async def test_a_machine_without_its_bid_refuses_the_listing(clock: SteppedClock) -> None:
    async with mithril_saying(paged({"": page()}, [machine()]), clock) as (mithril, _):
        with pytest.raises(market_errors.Malformed, match="without its bid"):
            await mithril.instances()
    others = [machine(bid=None, reservation="res_1"), machine(fid="inst_2", status="STATUS_TERMINATED")]
    async with mithril_saying(paged({"": page()}, others), clock) as (mithril, _):
        assert list(await mithril.instances()) == []


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["$1.50", "Open"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(
    changed=st.dictionaries(st.sampled_from(sorted(bid())), JUNK),
    shown=st.dictionaries(st.sampled_from(sorted(machine())), JUNK),
)
def test_no_answer_breaks_more_than_its_own_row(changed: dict[str, Any], shown: dict[str, Any]) -> None:
    """A row is read, with what cannot be read named, or the market is at fault; nothing else."""
    raw = json.dumps({"data": [bid(**changed)], "next_cursor": None}).encode()
    raw_machines = json.dumps({"data": [machine(**shown)], "next_cursor": None}).encode()
    try:
        (row,), _ = parse.bids(raw)
        machines, _ = parse.machines(raw_machines)
    except market_errors.Malformed:
        return
    where = rows.standing(row, rows.newest(machines), states.PausedBids(), was_allocated=False)
    if where is None:
        assert row.status == states.TERMINATED
        return
    instance = rows.instance(row, rows.newest(machines), where, rows.Known(disk_micros=spot_bids.DISK_MICROS))
    assert instance.instance_id == row.fid
    assert len(instance.label) <= labels.MAX_LABEL
    assert instance.bills_gpu or instance.state in {PENDING, PAUSED}
    assert instance.gpu_rate.micros >= 0 <= instance.disk_rate.micros


def test_every_word_of_the_market_has_a_meaning() -> None:
    for status in states.LISTED:
        assert states.standing(states.ALLOCATED, status, was_allocated=True) is not None
    assert rows.newest([]) is None
    assert client.LANES.keys() == {"v2", "prices", "history"}
