"""RunPod's interruptible pods: floors, orders at a bid, what stopped a pod, and how the product's end is taken."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from agent.clock import SteppedClock
from agent.domain import money
from agent.domain.market.instance import InstanceState
from agent.domain.market.tenure import Tenure
from agent.markets import market_errors
from agent.markets.port import Capability
from agent.markets.runpod.evidence import known_bids
from tests.markets import pods
from tests.markets.scene import LABEL, asked
from tests.markets.wire import Says, Seen

BID = replace(pods.ASK, tenure=Tenure.INTERRUPTIBLE, bid=money.per_hour("0.80"), environment=(("A", 'a "b"'),))
PAIR = msgspec.structs.replace(pods.OFFERED, gpus=2)
GONE = "There are no instances available with the request specifications. Please try again later."


def told(**changes: Any) -> dict[str, Any]:
    """A pod rented at $0.40 for each of its two GPUs, as GraphQL shows it."""
    stamp = "Thu Nov 05 2026 21:00:00 GMT+0000 (Coordinated Universal Time)"
    return {
        "id": pods.POD,
        "podType": "INTERRUPTABLE",
        "costPerHr": 0.80,
        "gpuCount": 2,
        "desiredStatus": "RUNNING",
        "lastStatusChange": f"Rented by User: {stamp}",
    } | changes


def changed(phrase: str) -> dict[str, Any]:
    stamp = "Thu Nov 05 2026 23:30:00 GMT+0200 (Somewhere)"
    return told(desiredStatus="EXITED", lastStatusChange=f"{phrase}: {stamp}")


async def test_a_floor_under_the_ask_can_be_bid_for_and_one_at_the_ask_cannot(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        found = await runpod.offers(asked(gpus=2))
        assert {(offer.gpu, offer.floor, offer.ask) for offer in found} == {
            ("RTX 4090", money.per_hour("0.70"), money.per_hour("1.32")),
            ("H100 SXM", None, money.per_hour("5.88")),
        }
        assert Capability.INTERRUPTIBLE in runpod.capabilities()
        await runpod.offers(asked(gpus=2, tenures=frozenset({Tenure.ON_DEMAND})))
        assert sum(seen.path == "/graphql" for seen in wire.seen) == 1


async def test_an_order_at_a_bid_is_for_each_gpu_and_its_values_travel_as_variables(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.account, clock) as (runpod, wire):
        assert await runpod.rent(PAIR, BID, LABEL) == pods.POD
    sent = wire.seen[0].json
    assert 'a "b"' not in sent["query"]
    order = sent["variables"]["input"]
    assert (order["bidPerGpu"], order["gpuCount"], order["gpuTypeId"]) == (0.4, 2, "NVIDIA GeForce RTX 4090")
    assert (order["cloudType"], order["dataCenterId"], order["name"]) == ("SECURE", "EU-RO-1", LABEL)
    assert order["env"] == [{"key": "A", "value": 'a "b"'}]
    assert (order["containerDiskInGb"], order["volumeInGb"], order["volumeMountPath"]) == (40, 40, "/workspace")


async def test_the_listing_tells_tenure_and_bid_of_a_pod_also_while_it_is_stopped(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.listing(pods.pod(cost=0.80), told=[told()]), clock) as (runpod, wire):
        (runs,) = await runpod.instances()
        assert (runs.tenure, runs.bid) == (Tenure.INTERRUPTIBLE, money.per_hour("0.80"))
        row = pods.pod(status="EXITED", cost=0, runtime=None)
        wire.answers = pods.listing(row, told=[changed("Outbid") | {"costPerHr": 0}])
        (stopped,) = await runpod.instances()
        assert (stopped.state, stopped.bid) == (InstanceState.PAUSED, money.per_hour("0.80"))
        (event,) = await runpod.events(datetime(2026, 11, 5, tzinfo=UTC))
        assert (event.kind, event.instance_id, event.at) == (
            "bid_lost",
            pods.POD,
            datetime(2026, 11, 5, 21, 30, tzinfo=UTC),
        )
        assert await runpod.events(datetime(2026, 11, 6, tzinfo=UTC)) == []


@pytest.mark.parametrize(
    ("phrase", "kind"),
    [
        ("Exited by user", "stopped"),
        ("exited by RunPod", "stopped_by_market"),
        ("OUTBID", "bid_lost"),
        ("Something new", None),
    ],
)
async def test_why_a_pod_stopped(clock: SteppedClock, phrase: str, kind: str | None) -> None:
    row = pods.pod(status="EXITED", cost=0, runtime=None)
    async with pods.runpod_saying(pods.listing(row, told=[changed(phrase)]), clock) as (runpod, _):
        (found,) = await runpod.instances()
        events = await runpod.events(datetime(2026, 11, 5, tzinfo=UTC))
    assert [event.kind for event in events] == ([kind] if kind else [])
    # What never ran and was stopped by the market could not start.
    assert found.state is (InstanceState.FAILED if kind == "stopped_by_market" else InstanceState.PAUSED)


async def test_a_stopped_pod_comes_back_at_its_bid_or_at_another_and_one_that_runs_keeps_its_bid(
    clock: SteppedClock,
) -> None:
    row = pods.pod(status="EXITED", cost=0, runtime=None)
    async with pods.runpod_saying(pods.listing(row, told=[changed("Outbid")]), clock) as (runpod, wire):
        await runpod.instances()
        await runpod.resume(pods.POD)
        await runpod.rebid(pods.POD, money.per_hour("1.00"))
        inputs = [seen.json["variables"]["input"] for seen in wire.seen if b"podBidResume" in seen.body]
        assert inputs == [
            {"podId": pods.POD, "bidPerGpu": 0.4, "gpuCount": 2},
            {"podId": pods.POD, "bidPerGpu": 0.5, "gpuCount": 2},
        ]
        wire.answers = pods.listing(pods.pod(cost=0.80), told=[told()])
        await runpod.instances()
        before = len(wire.seen)
        with pytest.raises(market_errors.Rejected) as caught:
            await runpod.rebid(pods.POD, money.per_hour("1.00"))
        assert (caught.value.reason, len(wire.seen)) == ("no_rebid", before)


def refusing(says: Says) -> Any:
    """Answer as the account, but orders at a bid so."""
    return lambda seen: says if b"mutation" in seen.body else pods.account(seen)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (pods.graph_error("Spot pods are no longer offered"), "not_sold"),
        (pods.graph_error('Cannot query field "podRentInterruptable" on type "Mutation".', status=400), "not_sold"),
        (pods.graph_error("x", "GRAPHQL_VALIDATION_FAILED", 400), "not_sold"),
        (Says(b"gone", 410), "not_sold"),
        (pods.graph_error(GONE), "no_capacity"),
        (pods.graph_error("full", "SUPPLY_CONSTRAINT"), "no_capacity"),
        (pods.graph_error("Your pod would be outbid at once"), "bid_too_low"),
        (pods.graph_error("There are not enough free GPUs on the host machine to start this pod."), "host_full"),
        (pods.graph_error("Insufficient balance to rent"), "out_of_funds"),
    ],
    ids=range(9),
)
async def test_a_refused_bid_is_proven_by_code_or_words(clock: SteppedClock, says: Says, reason: str) -> None:
    async with pods.runpod_saying(refusing(says), clock) as (runpod, wire):
        with pytest.raises(market_errors.Rejected) as caught:
            await runpod.rent(PAIR, BID, LABEL)
        assert (caught.value.reason, len(wire.seen)) == (reason, 1)
        is_off = reason == "not_sold"
        assert (Tenure.INTERRUPTIBLE in runpod.not_sold()) is is_off
        assert (Capability.INTERRUPTIBLE in runpod.capabilities()) is not is_off
        # On demand is rented as before.
        assert await runpod.rent(pods.OFFERED, pods.ASK, LABEL) == pods.POD


@pytest.mark.parametrize(
    "says",
    [
        pods.graph_error("Something went wrong.", "INTERNAL_SERVER_ERROR"),
        Says(b"<html>", 502),
        Says({"data": {"podRentInterruptable": None}}),
        Says({"data": None}),
        Says(drop=True),
    ],
    ids=range(5),
)
async def test_a_bid_whose_answer_proves_nothing_is_doubt_and_left_once(clock: SteppedClock, says: Says) -> None:
    async with pods.runpod_saying(refusing(says), clock) as (runpod, wire):
        with pytest.raises(market_errors.Ambiguous):
            await runpod.rent(PAIR, BID, LABEL)
        assert len(wire.seen) == 1


async def test_what_is_not_sold_is_offered_no_more_and_asked_for_again_seldom(clock: SteppedClock) -> None:
    async with pods.runpod_saying(refusing(pods.graph_error("Spot pods are no longer offered")), clock) as (
        runpod,
        wire,
    ):
        with pytest.raises(market_errors.Rejected):
            await runpod.rent(PAIR, BID, LABEL)
        before = len(wire.seen)
        assert {offer.floor for offer in await runpod.offers(asked(gpus=2))} == {None}
        assert [seen.path for seen in wire.seen[before:]] == ["/v2/catalog/gpus"]
        clock.advance(7 * 3600.0)
        assert {offer.floor for offer in await runpod.offers(asked(gpus=2))} != {None}
        assert runpod.not_sold() == {}


async def test_bids_that_never_find_capacity_end_the_offer_of_them(clock: SteppedClock) -> None:
    async with pods.runpod_saying(refusing(pods.graph_error(GONE)), clock) as (runpod, _):
        for wanted in (False, False, True):
            with pytest.raises(market_errors.Rejected):
                await runpod.rent(PAIR, BID, LABEL)
            assert (Tenure.INTERRUPTIBLE in runpod.not_sold()) is wanted


async def test_floors_at_the_ask_everywhere_are_none_at_all(clock: SteppedClock) -> None:
    def dear(seen: Seen) -> Says:
        if b"gpuTypes" not in seen.body:
            return pods.account(seen)
        price = {"minimumBidPrice": 0.66, "uninterruptablePrice": 0.66}
        return Says({"data": {"gpuTypes": [{"id": "NVIDIA GeForce RTX 4090", "lowestPrice": price}]}})

    async with pods.runpod_saying(dear, clock) as (runpod, _):
        assert (await runpod.account()).account_id == "user_1"
        assert "no floor" in runpod.not_sold()[Tenure.INTERRUPTIBLE]


async def test_a_listing_that_graphql_adds_nothing_to_is_one_where_nothing_is_at_a_bid(clock: SteppedClock) -> None:
    broken = Says(b"<html>", 503)
    async with pods.runpod_saying(pods.without_graphql(broken), clock) as (runpod, wire):
        # Nothing is known of these pods yet: one at a bid would pass for on demand.
        with pytest.raises(market_errors.Unavailable):
            await runpod.instances()
        wire.answers = pods.account
        assert len(await runpod.instances()) == 3
        wire.answers = pods.without_graphql(broken)
        assert len(await runpod.instances()) == 3
        wire.answers = pods.listing(pods.pod(), told=[told()])
        await runpod.instances()
        wire.answers = pods.without_graphql(broken)
        with pytest.raises(market_errors.Unavailable):
            await runpod.instances()
        # Once GraphQL is gone for good, pods are kept with their known fields.
        wire.answers = pods.without_graphql(Says(b"gone", 410))
        assert (await runpod.instances())[0].tenure is Tenure.INTERRUPTIBLE


async def test_a_pod_at_a_bid_that_ended_long_ago_refuses_no_listing_without_graphql(clock: SteppedClock) -> None:
    """Once a pod had been at a bid, each failure of GraphQL refused the whole listing until a restart."""
    empty, broken = pods.listing(told=[]), Says(b"<html>", 503)
    async with pods.runpod_saying(pods.listing(pods.pod(), told=[told()]), clock) as (runpod, wire):
        await runpod.instances()
        wire.answers = empty
        clock.advance(60.0)
        assert await runpod.instances() == []
        wire.answers = lambda seen: broken if seen.path == "/graphql" else empty(seen)
        clock.advance(60.0)
        with pytest.raises(market_errors.Unavailable):
            await runpod.instances()
        clock.advance(known_bids.KEPT_SECONDS)
        assert await runpod.instances() == []


def test_an_hour_without_a_listing_is_no_hour_without_the_pod() -> None:
    known, rate = known_bids.KnownBids(), money.per_hour("0.80")
    known["pod1"] = rate
    known.keep({"pod1"}, 0.0)
    for now in (known_bids.KEPT_SECONDS, 2 * known_bids.KEPT_SECONDS - 1.0):
        known.keep((), now)
        assert dict(known) == {"pod1": rate}
    known.keep((), 2 * known_bids.KEPT_SECONDS)
    assert not known


async def test_404s_in_place_of_graphql_make_no_pod_one_on_demand(clock: SteppedClock) -> None:
    lost = refusing(Says(drop=True))
    async with pods.runpod_saying(lost, clock) as (runpod, wire):
        with pytest.raises(market_errors.Ambiguous):
            await runpod.rent(PAIR, BID, LABEL)
        clock.advance(200.0)
        row = pods.pod(createdAt=clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"), cost=0.80)
        clock.advance(200.0)
        page = Says(b"<html>404</html>", 404)
        wire.answers = lambda seen: page if seen.path == "/graphql" else pods.listing(row)(seen)
        for _ in range(5):
            with pytest.raises(market_errors.Unavailable):
                await runpod.instances()
            clock.advance(170.0)
        wire.answers = pods.listing(row, told=[told()])
        assert [one.tenure for one in await runpod.instances()] == [Tenure.INTERRUPTIBLE]
        # GraphQL's answers stay known, also when it is taken for gone after a quarter of an hour.
        wire.answers = lambda seen: page if seen.path == "/graphql" else pods.listing(row)(seen)
        clock.advance(10.0)
        with pytest.raises(market_errors.Unavailable):
            await runpod.instances()
        clock.advance(901.0)
        assert [one.tenure for one in await runpod.instances()] == [Tenure.INTERRUPTIBLE]


async def test_a_fresh_pod_of_ours_that_graphql_does_not_show_yet_may_be_at_a_bid(clock: SteppedClock) -> None:
    lost = refusing(Says(drop=True))
    async with pods.runpod_saying(lost, clock) as (runpod, wire):
        with pytest.raises(market_errors.Ambiguous):
            await runpod.rent(PAIR, BID, LABEL)
        stamp = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        row = pods.pod(createdAt=stamp, cost=0.80)
        wire.answers = pods.listing(row)
        with pytest.raises(market_errors.Unavailable):
            await runpod.instances()
        wire.answers = pods.listing(row, told=[told()])
        assert [one.tenure for one in await runpod.instances()] == [Tenure.INTERRUPTIBLE]


async def test_what_graphql_told_serves_a_moment_unless_the_listing_says_otherwise(clock: SteppedClock) -> None:
    async with pods.runpod_saying(pods.listing(pods.pod(cost=0.80), told=[told()]), clock) as (runpod, wire):

        def questions() -> int:
            return sum(seen.path == "/graphql" for seen in wire.seen)

        await runpod.instances()
        await runpod.instance(pods.POD)
        assert questions() == 1
        row = pods.pod(status="EXITED", cost=0, runtime=None)
        wire.answers = pods.listing(row, told=[changed("Outbid")])
        (stopped,) = await runpod.instances()
        assert (questions(), stopped.message[:6]) == (2, "Outbid")
        clock.advance(5.0)
        await runpod.instances()
        assert questions() == 3
